// The page's own script: draw the charts from the one data block, sort and filter tables by
// keyboard, open what is folded before printing. Without it every table is there all the same.
(() => {
  "use strict";
  const given = document.getElementById("report-data"); // a page of a trace has no charts
  const block = given ? JSON.parse(given.textContent) : { charts: [] };

  const rows = (columns) => {
    const names = Object.keys(columns);
    const length = names.length ? columns[names[0]].length : 0;
    return Array.from({ length }, (_, at) =>
      Object.fromEntries(names.map((name) => [name, columns[name][at]])));
  };

  const draw = async ({ name, spec }) => {
    const place = document.getElementById(name);
    const datasets = { [name]: rows(block.data[name]) };
    const full = { ...spec, config: block.config, datasets };
    try {
      // ast: expressions are interpreted, because the page forbids eval.
      await vegaEmbed(place, full,
        { ast: true, actions: false, renderer: "svg", defaultStyle: false });
      place.dataset.drawn = "yes";
    } catch (error) {
      place.textContent = "This chart could not be drawn; its numbers are in the table below.";
      console.error(name, error);
    }
  };

  // What a cell sorts by: in a column of numbers the first one in it, as in `[9.2, 9.4]` or `12~`.
  const value = (row, at, isNumber) => {
    const text = row.cells[at].textContent.trim();
    if (!isNumber) return text === "\u2013" ? "" : text;
    const number = Number.parseFloat(text.replace(/^\[/, ""));
    return Number.isNaN(number) ? "" : number;
  };

  // Missing values stay last, whichever way one sorts.
  const compare = (a, b, way) => {
    if (a === "" || b === "") return (a === "") - (b === "");
    if (typeof a === "number" && typeof b === "number") return way * (a - b);
    return way * String(a).localeCompare(String(b), undefined, { numeric: true });
  };

  const sortable = (table) => {
    const body = table.tBodies[0];
    const original = [...body.rows];
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, at) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      head.setAttribute("aria-sort", "none");
      button.addEventListener("click", () => {
        const next = { none: "ascending", ascending: "descending", descending: "none" };
        const way = next[head.getAttribute("aria-sort")];
        heads.forEach((other) => other.setAttribute("aria-sort", "none"));
        head.setAttribute("aria-sort", way);
        const sign = way === "ascending" ? 1 : -1;
        const by = (row) => value(row, at, head.classList.contains("n"));
        const order = way === "none" ? original
          : [...original].sort((a, b) => compare(by(a), by(b), sign));
        body.append(...order);
      });
    });
  };

  const filterable = (input) => {
    const table = document.getElementById(input.dataset.table);
    const count = document.getElementById(input.dataset.count);
    const all = [...table.tBodies[0].rows];
    if (all.length < 9) return; // seen at a glance
    input.closest(".filter").hidden = false;
    input.addEventListener("input", () => {
      const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      for (const row of all) {
        const text = row.textContent.toLowerCase();
        row.hidden = !words.every((word) => text.includes(word));
        shown += row.hidden ? 0 : 1;
      }
      count.textContent = words.length ? `${shown} of ${all.length}` : "";
    });
  };

  document.querySelectorAll("table.sortable").forEach(sortable);
  document.querySelectorAll("input[data-table]").forEach(filterable);
  addEventListener("beforeprint", () =>
    document.querySelectorAll("details").forEach((each) => { each.open = true; }));
  block.charts.forEach(draw);
})();
