// A timeline on a canvas. It is drawn anew for each look: what is before the view is found by
// halving, and what falls on one pixel is drawn once, so the number of events hardly matters.
const timelineDrawing = (line, canvas, frame, view) => {
  "use strict";
  const { FIRST, LAST, OVERVIEW, TOP, CAPTION, RULER, lanes, kindOf, lasting } = line;
  const FONT = "11px system-ui, sans-serif", LETTER = 6.1; // px that a letter takes, about
  const pen = canvas.getContext("2d");
  const across = (time) => ((time - view.from) / (view.to - view.from)) * view.wide;

  // ---- colours ----------------------------------------------------------------------------------

  const LIGHT = { paper: "#ffffff", sheet: "#f6f7f9", ink: "#14181f", soft: "#545d6b",
    line: "#d9dde3", focus: "#0072b2" };
  const ink = { ...LIGHT };
  const readInk = () => { // paper is always light
    const style = getComputedStyle(document.documentElement);
    for (const name of Object.keys(LIGHT)) {
      const here = view.printing ? "" : style.getPropertyValue(`--${name}`).trim();
      ink[name] = here || LIGHT[name];
    }
  };

  const kept = (make) => {
    const known = new Map();
    return (key) => known.get(key) ?? known.set(key, make(key)).get(key);
  };
  const linear = (hex) => {
    const part = parseInt(hex, 16) / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  };
  const letters = kept((colour) => { // black or white, whichever is read better on it
    const [red, green, blue] = [1, 3, 5].map((at) => linear(colour.slice(at, at + 2)));
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179 ? "#000000" : "#ffffff";
  });
  const hatch = kept((colour) => {
    const tile = document.createElement("canvas");
    tile.width = tile.height = 6;
    const draw = tile.getContext("2d");
    draw.strokeStyle = colour;
    draw.lineWidth = 2;
    draw.beginPath();
    for (const shift of [-6, 0, 6]) { draw.moveTo(shift, 6); draw.lineTo(shift + 6, 0); }
    draw.stroke();
    return pen.createPattern(tile, "repeat");
  });

  // ---- rectangles -------------------------------------------------------------------------------

  const isPicked = (lane, i) =>
    view.picked.place === lane.place && view.picked.kind === lane.kind[i];

  const drawRow = (lane, row, top, dimmed) => {
    const { list, reach } = lane.rows[row], plain = pen.globalAlpha;
    const scale = view.wide / (view.to - view.from);
    // What is smaller than a pixel is drawn as strong as it fills it, so that sparse work looks so.
    let pixel = -1, filled = 0, most = 0, colour = "";
    const flush = () => {
      if (!filled) return;
      pen.globalAlpha = plain * Math.max(0.25, Math.min(1, filled ** 0.6));
      pen.fillStyle = colour;
      pen.fillRect(pixel, top, 1, lane.tall - 1);
      pen.globalAlpha = plain;
      filled = most = 0;
    };
    for (let n = line.after(reach, view.from); n < list.length; n++) {
      const i = list[n];
      if (lane.start[i] >= view.to) break;
      if (view.picked && isPicked(lane, i) === dimmed) continue;
      const left = Math.max(-2, (lane.start[i] - view.from) * scale);
      const size = Math.min(view.wide + 2, (lane.end[i] - view.from) * scale) - left;
      if (size >= 1) {
        drawOne(lane, i, left, top, size);
        continue;
      }
      if (Math.floor(left) !== pixel) flush();
      pixel = Math.floor(left);
      filled += Math.max(size, 0.02);
      if (size >= most) {
        most = size;
        colour = kindOf(lane, i)[1];
      }
    }
    flush();
  };

  const drawOne = (lane, i, left, top, size) => {
    const colour = kindOf(lane, i)[1], tall = lane.tall - 1, plain = pen.globalAlpha;
    if (lane.place === "idle") {
      pen.globalAlpha = plain * 0.35;
      pen.fillStyle = colour;
      pen.fillRect(left, top, size, tall);
      pen.globalAlpha = plain;
      pen.fillStyle = size > 3 ? hatch(colour) : colour;
      pen.fillRect(left, top, size, tall);
      return;
    }
    pen.fillStyle = colour; // half a pixel less, so that neighbours of one colour are told apart
    pen.fillRect(left, top, size > 3 ? size - 0.5 : size, tall);
    pen.fillStyle = letters(colour);
    if (lane.parts[i] && size > 3) { // a block is dotted below
      for (let x = left + 1; x < left + size - 2; x += 4) pen.fillRect(x, top + tall - 3, 2, 2);
    }
    const begin = Math.max(left, 0), end = Math.min(left + size, view.wide);
    const room = Math.floor((end - begin - 8) / LETTER);
    if (room < 3) return;
    const text = line.label(lane, i);
    const fits = text.length > room ? `${text.slice(0, room - 1)}\u2026` : text;
    pen.fillText(fits, begin + 4, top + lane.tall / 2);
  };

  const drawLane = (lane) => {
    const shift = -frame.scrollTop;
    lane.rows.forEach((_, row) => {
      const top = lane.body + row * lane.tall + shift;
      if (top + lane.tall < TOP || top > view.high) return;
      if (view.picked) {
        pen.globalAlpha = 0.16;
        drawRow(lane, row, top, true);
        pen.globalAlpha = 1;
      }
      drawRow(lane, row, top, false);
    });
    const [begin, end] = lane.place === "thread" ? line.host : line.window;
    pen.globalAlpha = 0.62;
    pen.fillStyle = ink.paper;
    const outside = [[view.from, Math.min(begin, view.to)], [Math.max(end, view.from), view.to]];
    for (const [a, b] of outside) {
      if (b <= a) continue;
      pen.fillRect(across(a), lane.body + shift, across(b) - across(a), lane.bottom - lane.body);
    }
    pen.globalAlpha = 1;
    pen.fillStyle = ink.soft;
    pen.fillText(lane.title, 4, lane.top + CAPTION / 2 + shift + 1);
    pen.fillStyle = ink.line;
    pen.fillRect(0, lane.bottom + shift, view.wide, 1);
  };

  const outlined = ({ lane, i }, colour) => {
    const left = Math.max(-4, across(lane.start[i]) - 1);
    const right = Math.min(view.wide + 4, Math.max(left + 3, across(lane.end[i]) + 1));
    pen.strokeStyle = colour;
    pen.lineWidth = 2;
    const top = lane.body + lane.row[i] * lane.tall - frame.scrollTop;
    pen.strokeRect(left, top - 1, right - left, lane.tall);
  };

  const drawChosen = () => {
    if (view.hovered) outlined(view.hovered, ink.focus);
    if (!view.chosen) return;
    pen.lineWidth = 1.5;
    for (const other of line.linked(view.chosen).slice(0, 300)) {
      const [a, b] = [view.chosen, other].map(({ lane, i }) => [across(lane.start[i]),
        lane.body + (lane.row[i] + 0.5) * lane.tall - frame.scrollTop]);
      pen.strokeStyle = ink.ink;
      pen.beginPath();
      pen.moveTo(...a);
      pen.lineTo(...b);
      pen.stroke();
      outlined(other, ink.soft);
    }
    outlined(view.chosen, ink.ink);
  };

  // ---- overview, ruler, steps -------------------------------------------------------------------

  const busy = (() => { // the share of each pixel of all time in which devices, or the host, work
    let made = null;
    const add = (begin, end, each) => {
      for (let n = Math.max(0, Math.floor((begin - FIRST) / each)); n < made.length; n++) {
        const low = Math.max(begin, FIRST + n * each), top = Math.min(end, FIRST + (n + 1) * each);
        if (top <= low) return;
        made[n] += (top - low) / each;
      }
    };
    return () => {
      const size = Math.max(1, Math.floor(view.wide)), each = (LAST - FIRST) / size;
      if (made?.length === size) return made;
      made = new Float64Array(size);
      const place = lanes.some((lane) => lane.place === "stream") ? "stream" : "thread";
      for (const lane of lanes.filter((one) => one.place === place)) {
        for (let i = 0; i < lane.size; i++) {
          if (place === "thread" && lane.kind[i] < line.OPERATOR) continue; // spans may just wait
          add(Math.max(lane.start[i], FIRST), Math.min(lane.end[i], LAST), each);
        }
      }
      return made;
    };
  })();

  const drawOverview = () => {
    pen.fillStyle = ink.sheet;
    pen.fillRect(0, 0, view.wide, OVERVIEW);
    pen.fillStyle = ink.soft;
    busy().forEach((share, x) => {
      const tall = Math.min(1, share) * (OVERVIEW - 6);
      if (tall > 0) pen.fillRect(x, OVERVIEW - 2 - tall, 1, tall);
    });
    const scale = view.wide / (LAST - FIRST), left = (view.from - FIRST) * scale;
    const size = Math.max(4, (view.to - view.from) * scale);
    pen.globalAlpha = 0.72;
    pen.fillStyle = ink.paper;
    pen.fillRect(0, 0, left, OVERVIEW);
    pen.fillRect(left + size, 0, view.wide - left - size, OVERVIEW);
    pen.globalAlpha = 1;
    pen.strokeStyle = ink.focus;
    pen.lineWidth = 2;
    pen.strokeRect(left + 1, 1, size - 2, OVERVIEW - 2);
  };

  const apart = (rough) => { // 1, 2 or 5 of a power of ten
    const power = 10 ** Math.floor(Math.log10(rough));
    return [1, 2, 5, 10].map((each) => each * power).find((each) => each >= rough);
  };
  const tick = (ns, each) => {
    const [unit, power] = each >= 1e9 ? ["s", 9] : each >= 1e3 ? ["ms", 6] : ["\u00b5s", 3];
    const places = Math.max(0, power - Math.floor(Math.log10(each)));
    return line.minus(`${(ns / 10 ** power).toFixed(places)} ${unit}`);
  };

  const drawRuler = () => {
    pen.fillStyle = ink.paper;
    pen.fillRect(0, OVERVIEW, view.wide, RULER);
    pen.lineWidth = 1;
    const each = Math.max(1, apart(((view.to - view.from) / view.wide) * 110));
    for (let n = Math.ceil(view.from / each); n * each < view.to; n++) {
      const x = Math.round(across(n * each));
      pen.fillStyle = ink.line;
      pen.fillRect(x, OVERVIEW + 2, 1, 14);
      pen.fillStyle = ink.soft;
      if (x + 60 < view.wide) pen.fillText(tick(n * each, each), x + 4, OVERVIEW + 10);
    }
    line.steps.forEach(([begin, end], n) => {
      const left = Math.max(0, across(begin)), size = Math.min(view.wide, across(end)) - left;
      if (size <= 0) return;
      pen.fillStyle = ink.sheet;
      pen.fillRect(left, OVERVIEW + 18, size, 15);
      pen.strokeStyle = ink.soft;
      pen.strokeRect(left + 0.5, OVERVIEW + 18.5, size - 1, 14);
      const many = line.steps.length, room = Math.floor((size - 8) / 5.6);
      const text = `${many > 1 ? `step ${n + 1} of ${many}` : "window"}, ${lasting(end - begin)}`;
      pen.fillStyle = ink.ink;
      if (room > 5) pen.fillText(text.slice(0, room), left + 5, OVERVIEW + 26);
    });
  };

  const drawSteps = () => { // of the device: the host has marks of its own
    const ends = lanes.filter((lane) => lane.place !== "thread").map((lane) => lane.bottom);
    const last = Math.max(...(ends.length ? ends : [line.tall])) - frame.scrollTop;
    pen.strokeStyle = ink.soft;
    pen.lineWidth = 1;
    pen.setLineDash([3, 3]);
    for (const time of new Set(line.steps.flat())) {
      const x = Math.round(across(time)) + 0.5;
      pen.beginPath();
      pen.moveTo(x, TOP);
      pen.lineTo(x, Math.max(TOP, last));
      pen.stroke();
    }
    pen.setLineDash([]);
  };

  const draw = () => {
    pen.setTransform(view.dense, 0, 0, view.dense, 0, 0);
    pen.font = FONT;
    pen.textBaseline = "middle";
    pen.fillStyle = ink.paper;
    pen.fillRect(0, 0, view.wide, view.high);
    for (const lane of lanes) {
      const seen = lane.bottom - frame.scrollTop > TOP && lane.top - frame.scrollTop < view.high;
      if (seen) drawLane(lane);
    }
    drawSteps();
    drawChosen();
    drawOverview();
    drawRuler();
  };

  return { draw, readInk };
};
