"""The machines that a search for few vectors compares: which problem each solves, and by which solver."""

from __future__ import annotations

from dataclasses import dataclass, replace

from slimsvm.parts.problem import Problem
from slimsvm.solvers.exact import Exact
from slimsvm.solvers.sampled_cuts import ExactCuts
from slimsvm.tasks import Task

NEAR, SOLVED, LEARNED = "near", "solved", "learned"


@dataclass(frozen=True)
class Machine:
    """The problem that vectors and coefficients belong to, and how they were found.

    Parameters
    ----------
    task : Task
    way : str
        Of moved vectors, NEAR has the coefficients of the model nearest to the exact one, and SOLVED those of the
        convex problem at twice the price. LEARNED has vectors and coefficients of `Refine`.
    """

    task: Task
    way: str


def measured_by(task: Task) -> Task:
    """The task of the exact machine that few vectors are measured by: pairs of classes, where these are quicker."""
    return task.in_pairs() or task


def in_one(task: Task) -> Task | None:
    """The task as one problem: a score for each class in place of pairs, None where pairs were asked for."""
    return task.in_scores() if task.class_pairs() else task


def exact_solver(task: Task) -> Exact | ExactCuts:
    """The faster of the exact solvers: decomposition where the loss has its dual, or exact cuts."""
    return Exact() if task.has_dual or task.class_pairs() else ExactCuts()


def machine_problem(problem: Problem, task: Task) -> Problem:
    """The problem with another task of the same labels; scores of several classes have no free intercept."""
    if task == problem.task:
        return problem
    examples = task.encode(problem.examples.labels, problem.examples.weights)
    is_free = problem.intercept == "free" and bool(task.class_pairs())
    intercept = "regularized" if problem.intercept == "free" and not is_free else problem.intercept
    return replace(problem, task=task, examples=examples, intercept=intercept)
