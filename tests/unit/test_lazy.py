"""Names that are imported when first asked for."""

import importlib
import pkgutil

import slimsvm

PACKAGES = [
    module.name
    for module in pkgutil.walk_packages(slimsvm.__path__, "slimsvm.")
    if module.ispkg and not module.name.startswith("slimsvm.dask")
]


def test_no_module_takes_the_place_of_a_name_that_its_package_gives():
    # Python sets a module as an attribute of its package: imported first, it would stand there in place of the name.
    taken = []
    for name in ["slimsvm", *PACKAGES]:
        package = importlib.import_module(name)
        modules = {module.name for module in pkgutil.iter_modules(package.__path__)}
        taken += [f"{name}.{key}" for key, home in getattr(package, "_HOMES", {}).items() if home and key in modules]
    assert taken == []
