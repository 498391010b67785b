"use strict";
const value = (row, column) => {
  const text = row.cells[column].textContent;
  const number = parseFloat(text.replaceAll(",", ""));
  return Number.isNaN(number) ? text : number;
};
for (const head of document.querySelectorAll("th")) {
  head.addEventListener("click", () => {
    const column = head.cellIndex, body = head.closest("table").tBodies[0];
    const down = head.getAttribute("aria-sort") === "ascending";
    for (const other of head.parentElement.cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const rows = [...body.rows].sort((one, other) => {
      const a = value(one, column), b = value(other, column);
      const order = typeof a === typeof b ? (a < b ? -1 : a > b ? 1 : 0) : typeof a === "number" ? -1 : 1;
      return down ? -order : order;
    });
    body.append(...rows);
  });
}
