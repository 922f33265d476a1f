// The timeline of a trace in the hands of a person: look around, choose, read what a thing is.
(() => {
  "use strict";
  const at = (id) => document.getElementById(id);
  if (!at("timeline-data")) return;
  const line = timelineOf(JSON.parse(at("timeline-data").textContent));
  const { FIRST, LAST, TOP, OVERVIEW, lanes } = line;
  const frame = at("frame"), canvas = at("canvas"), detail = at("detail"), legend = at("legend");
  const LEAST = 500; // ns that are shown at least

  // picked: the place and the kind that the legend picks out; chosen, hovered: a lane and a place.
  const view = { from: FIRST, to: LAST, wide: 1, high: 1, dense: 1, printing: false,
    chosen: null, hovered: null, picked: null };
  const drawing = timelineDrawing(line, canvas, frame, view);

  let waiting = 0;
  const later = () => { if (!waiting) waiting = requestAnimationFrame(now); };
  const now = () => {
    cancelAnimationFrame(waiting);
    waiting = 0;
    drawing.draw();
    const span = view.to - view.from;
    const said = `${line.moment(view.from, span)} to ${line.moment(view.to, span)}: `
      + line.lasting(span);
    if (at("shown").textContent !== said) at("shown").textContent = said;
  };

  // ---- looking ----------------------------------------------------------------------------------

  const timeAt = (x) => view.from + (x / view.wide) * (view.to - view.from);
  const least = () => Math.max(LEAST, (view.wide * line.finest) / 8); // a block is seen as such
  const look = (begin, length) => {
    const size = Math.min(Math.max(length, least()), LAST - FIRST);
    view.from = Math.min(Math.max(begin, FIRST), LAST - size);
    view.to = view.from + size;
    later();
  };
  const zoom = (factor, centre = (view.from + view.to) / 2) =>
    look(centre - (centre - view.from) * factor, (view.to - view.from) * factor);
  const pan = (share) => look(view.from + share * (view.to - view.from), view.to - view.from);
  const fit = () => look(FIRST, LAST - FIRST);
  const around = (begin, end) => {
    const size = Math.max((end - begin) * 1.08, least());
    look((begin + end - size) / 2, size);
  };
  const into = ({ lane, i }) => around(lane.start[i], lane.end[i]);
  const step = (way) => {
    const { steps } = line, last = steps.length - 1, centre = (view.from + view.to) / 2;
    if (last < 0) return;
    let next = steps.findIndex(([begin, end]) => centre >= begin && centre < end) + way;
    if (view.to - view.from > 0.9 * (LAST - FIRST)) next = way > 0 ? 0 : last;
    around(...steps[Math.min(Math.max(next, 0), last)]);
  };
  const resize = () => {
    at("sheet").style.height = `${line.tall}px`;
    view.wide = Math.max(1, frame.clientWidth);
    view.high = Math.min(line.tall, frame.clientHeight || line.tall);
    view.dense = Math.min(3, window.devicePixelRatio || 1);
    canvas.style.height = `${view.high}px`;
    canvas.width = Math.round(view.wide * view.dense);
    canvas.height = Math.round(view.high * view.dense);
    look(view.from, view.to - view.from);
  };

  // ---- detail -----------------------------------------------------------------------------------

  const made = (tag, text, kind = "") => {
    const element = document.createElement(tag);
    element.textContent = text;
    element.className = kind;
    return element;
  };
  const tell = (spot) => {
    if (!spot) {
      const hint = "Point at something, or choose it, to see what it is.";
      detail.replaceChildren(made("p", hint, "soft"));
      return;
    }
    const list = document.createElement("dl");
    for (const [term, said] of line.facts(spot)) {
      const pair = document.createElement("div");
      pair.append(made("dt", term), made("dd", said));
      list.append(pair);
    }
    detail.replaceChildren(made("p", line.title(spot.lane, spot.i), "name"), list);
  };

  const choose = (spot) => {
    view.chosen = spot;
    view.hovered = null;
    tell(spot);
    later();
    if (!spot) return;
    const { lane, i } = spot, top = lane.body + lane.row[i] * lane.tall - frame.scrollTop;
    if (top < TOP) frame.scrollTop += top - TOP - line.CAPTION;
    else if (top + lane.tall > view.high) frame.scrollTop += top + lane.tall + 8 - view.high;
    if (lane.end[i] < view.from || lane.start[i] > view.to) {
      look((lane.start[i] + lane.end[i] - view.to + view.from) / 2, view.to - view.from);
    }
  };
  const hover = (spot) => {
    if (spot?.lane === view.hovered?.lane && spot?.i === view.hovered?.i) return;
    view.hovered = spot;
    detail.setAttribute("aria-live", "off"); // spoken is only what was chosen
    tell(spot || view.chosen);
    detail.setAttribute("aria-live", "polite");
    later();
  };

  const spotAt = ({ x, y }) => {
    const deep = y + frame.scrollTop;
    const lane = lanes.find((each) => deep >= each.body && deep < each.bottom);
    if (!lane || y < TOP) return null;
    const slack = (3 / view.wide) * (view.to - view.from);
    return line.nearest(lane, Math.floor((deep - lane.body) / lane.tall), timeAt(x), slack);
  };
  const along = (way) => { // the event before or after in the row of the chosen one
    if (!view.chosen) { down(1); return; }
    const { lane, i } = view.chosen, { list } = lane.rows[lane.row[i]];
    const next = list.indexOf(i) + way;
    if (next >= 0 && next < list.length) choose({ lane, i: list[next] });
  };
  const down = (way) => { // the row below or above, near the same time
    const rows = lanes.flatMap((lane) => lane.rows.map((each, row) => ({ lane, row, each })))
      .filter(({ each }) => each.list.length);
    if (!rows.length) return;
    const { lane: mine, i } = view.chosen || {};
    const here = mine
      ? rows.findIndex(({ lane, row }) => lane === mine && row === mine.row[i]) + way : 0;
    const middle = mine ? (mine.start[i] + mine.end[i]) / 2 : NaN;
    const time = middle >= view.from && middle <= view.to ? middle : (view.from + view.to) / 2;
    const { lane, row } = rows[Math.min(Math.max(here, 0), rows.length - 1)];
    choose(line.nearest(lane, row, time, LAST - FIRST));
  };

  // ---- keys and buttons -------------------------------------------------------------------------

  const DO = {
    in: () => zoom(0.5), out: () => zoom(2), left: () => pan(-0.25), right: () => pan(0.25), fit,
    previous: () => step(-1), next: () => step(1),
  };
  const KEYS = {
    "+": DO.in, "=": DO.in, "-": DO.out, "_": DO.out, ArrowLeft: DO.left, ArrowRight: DO.right,
    f: fit, 0: fit, "[": DO.previous, "]": DO.next, ",": () => along(-1), ".": () => along(1),
    ArrowUp: () => down(-1), ArrowDown: () => down(1), Escape: () => choose(null),
    Home: () => look(FIRST, view.to - view.from), End: () => look(LAST, view.to - view.from),
    Enter: () => { if (view.chosen) into(view.chosen); },
  };
  frame.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !KEYS[event.key]) return;
    event.preventDefault();
    KEYS[event.key]();
  });
  document.querySelectorAll("[data-do]").forEach((button) =>
    button.addEventListener("click", DO[button.dataset.do]));

  // ---- pointer ----------------------------------------------------------------------------------

  const fingers = new Map();
  let drag = null;
  const place = (event) => {
    const box = canvas.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  };
  const pinched = () => {
    const [a, b] = [...fingers.values()];
    return { x: (a.x + b.x) / 2, apart: Math.max(20, Math.abs(a.x - b.x)) };
  };
  const overviewTo = (x) =>
    look(FIRST + (x / view.wide) * (LAST - FIRST) - (view.to - view.from) / 2, view.to - view.from);

  canvas.addEventListener("pointerdown", (event) => {
    if (event.button) return;
    const spot = place(event);
    fingers.set(event.pointerId, spot);
    canvas.setPointerCapture(event.pointerId);
    frame.focus({ preventScroll: true });
    drag = { spot, from: view.from, overview: spot.y < OVERVIEW, moved: false };
    if (fingers.size > 1) {
      const { x, apart } = pinched();
      drag = { pinch: { centre: timeAt(x), size: (view.to - view.from) * apart } };
    } else if (drag.overview) overviewTo(spot.x);
  });
  canvas.addEventListener("pointermove", (event) => {
    const spot = place(event);
    if (!drag) { hover(spotAt(spot)); return; }
    if (fingers.has(event.pointerId)) fingers.set(event.pointerId, spot);
    if (drag.pinch) { // what was between the fingers stays there
      if (fingers.size < 2) return;
      const { x, apart } = pinched(), size = drag.pinch.size / apart;
      look(drag.pinch.centre - (x / view.wide) * size, size);
    } else if (drag.overview) overviewTo(spot.x);
    else {
      const by = spot.x - drag.spot.x;
      drag.moved = drag.moved || Math.abs(by) > 4;
      const span = view.to - view.from;
      if (drag.moved) look(drag.from - (by / view.wide) * span, span);
    }
  });
  const release = (event) => {
    const ended = drag;
    fingers.delete(event.pointerId);
    drag = null;
    const clicked = event.type === "pointerup" && ended?.spot && !ended.moved && !ended.overview;
    if (clicked) choose(spotAt(ended.spot));
  };
  canvas.addEventListener("pointerup", release);
  canvas.addEventListener("pointercancel", release);
  canvas.addEventListener("pointerleave", () => hover(null));
  canvas.addEventListener("dblclick", (event) => {
    const found = spotAt(place(event));
    if (found) into(found);
  });
  canvas.addEventListener("wheel", (event) => { // a page that scrolls is not stopped by a drawing
    const sideways = Math.abs(event.deltaX) > Math.abs(event.deltaY);
    const meant = event.ctrlKey || event.metaKey || document.activeElement === frame;
    if (!sideways && !meant) return;
    event.preventDefault();
    const by = Math.max(-400, Math.min(400, event.deltaY * (event.deltaMode ? 30 : 1)));
    if (sideways) pan(event.deltaX / view.wide);
    else zoom(1.0018 ** by, timeAt(place(event).x));
  }, { passive: false });
  frame.addEventListener("scroll", later);

  // ---- legend -----------------------------------------------------------------------------------

  const spent = (kind) => { // ns by kind, of all lanes of a place
    const some = new Map();
    for (const lane of lanes.filter((each) => each.place === kind)) {
      for (let i = 0; i < lane.size; i++) {
        const whole = [[lane.kind[i], lane.end[i] - lane.start[i]]];
        for (const [which, took] of lane.parts[i] || whole) {
          some.set(which, (some.get(which) || 0) + took);
        }
      }
    }
    return [...some].sort((a, b) => b[1] - a[1]).map(([which]) => which);
  };
  const pick = (button, kind, which) => {
    const same = view.picked?.place === kind && view.picked.kind === which;
    legend.querySelectorAll("button").forEach((each) =>
      each.setAttribute("aria-pressed", "false"));
    button.setAttribute("aria-pressed", String(!same));
    view.picked = same ? null : { place: kind, kind: which };
    later();
  };
  const entry = (kind, which) => {
    const [said, colour] = line.kinds[kind][which], sign = document.createElement("i");
    sign.style.background = kind === "idle"
      ? `repeating-linear-gradient(135deg, ${colour} 0 2px, ${colour}59 2px 4px)` : colour;
    const button = made("button", "");
    button.type = "button";
    button.setAttribute("aria-pressed", "false");
    button.append(sign, said);
    button.addEventListener("click", () => pick(button, kind, which));
    return button;
  };
  for (const [kind, said] of Object.entries({ stream: "GPU", idle: "Idle", thread: "Host" })) {
    const entries = spent(kind).map((which) => entry(kind, which));
    if (!entries.length) continue;
    const row = document.createElement("div");
    row.append(made("span", said, "soft"), ...entries);
    legend.append(row);
  }

  // ---- begin ------------------------------------------------------------------------------------

  at("drawing").hidden = false;
  const anew = (printing) => () => { // at once: a canvas of another size is blank
    view.printing = printing;
    drawing.readInk();
    resize();
    now();
  };
  tell(null);
  anew(false)();
  new ResizeObserver(() => anew(view.printing)()).observe(frame);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", anew(false));
  addEventListener("beforeprint", anew(true));
  addEventListener("afterprint", anew(false));
})();
