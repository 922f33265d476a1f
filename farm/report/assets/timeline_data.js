// What the data block of a trace means: lanes of rectangles, what each is called, and what launched
// what. All of it is ASCII, so that its hash is the same wherever the page is written to.
const timelineOf = (data) => {
  "use strict";
  const [FIRST, LAST] = data.view;
  const OVERVIEW = 24, RULER = 36, TOP = OVERVIEW + RULER, CAPTION = 16, GAP = 7; // px
  const TALL_ROW = { stream: 24, idle: 14, thread: 16 };
  const OPERATOR = 2, FIRST_CALL = 3; // kinds of a thread: phase, span, op, then calls

  // ---- lanes ------------------------------------------------------------------------------------

  const column = (given, size, Kind) =>
    Array.isArray(given) ? Kind.from(given) : new Kind(size).fill(given);

  const unpacked = (lane, number) => {
    const size = lane.start.length, start = new Float64Array(size), end = new Float64Array(size);
    let now = 0;
    for (let i = 0; i < size; i++) {
      now += lane.start[i];
      start[i] = now;
      end[i] = now + lane.length[i];
    }
    const made = {
      number, size, start, end, place: lane.place, title: lane.title, parts: lane.parts,
      tall: TALL_ROW[lane.place], row: column(lane.row, size, Uint16Array),
      name: column(lane.name, size, Int32Array), kind: column(lane.kind, size, Uint16Array),
      phase: column(lane.phase, size, Int32Array), by: column(lane.by, size, Int32Array),
      lead: (i) => (Array.isArray(lane.lead) ? lane.lead[i] : lane.lead),
    };
    // Of each row its rectangles by start, and how far those so far reach: what overlaps is found.
    const rows = Array.from({ length: lane.rows }, () => []);
    for (let i = 0; i < size; i++) rows[made.row[i]].push(i);
    made.rows = rows.map((list) => {
      const reach = new Float64Array(list.length);
      let most = -Infinity;
      list.forEach((i, n) => { most = Math.max(most, end[i]); reach[n] = most; });
      return { list: Int32Array.from(list), reach };
    });
    return made;
  };

  const lanes = data.lanes.map(unpacked);
  let y = TOP + 4;
  for (const lane of lanes) {
    lane.top = y;
    lane.body = y + CAPTION;
    lane.bottom = lane.body + lane.rows.length * lane.tall;
    y = lane.bottom + GAP;
  }

  const after = (values, time) => { // the first place whose value is larger
    let low = 0, high = values.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (values[middle] > time) high = middle; else low = middle + 1;
    }
    return low;
  };

  // What is at a time in a row, or so many ns beside it; of several the one that began last.
  const nearest = (lane, row, time, slack) => {
    const { list, reach } = lane.rows[row];
    let best = null, closest = Infinity;
    for (let n = Math.max(0, after(reach, time - slack) - 1); n < list.length; n++) {
      const i = list[n];
      if (lane.start[i] > time + Math.min(slack, closest)) break;
      const away = Math.max(lane.start[i] - time, time - lane.end[i], 0);
      if (away <= slack && away <= closest) { best = i; closest = away; }
    }
    return best === null ? null : { lane, i: best };
  };

  // ---- words ------------------------------------------------------------------------------------

  const minus = (text) => text.replace("-", "\u2212");
  const digits = (value, unit, each) => minus(`${Number((value / each).toPrecision(4))} ${unit}`);
  const lasting = (ns) => {
    const size = Math.abs(ns);
    if (size >= 1e9) return digits(ns, "s", 1e9);
    if (size >= 1e6) return digits(ns, "ms", 1e6);
    if (size >= 1e3) return digits(ns, "\u00b5s", 1e3);
    return minus(`${Math.round(ns)} ns`);
  };
  const moment = (ns, span = 0) => minus(`${(ns / 1e6).toFixed(span > 1e6 ? 3 : 5)} ms`);
  const counted = (n) => n.toLocaleString("en");
  const kindOf = (lane, i) => data.kinds[lane.place][lane.kind[i]]; // what it is called, its colour

  // The part of a kernel's name that tells it from others: no return type, template or name space.
  const short = (name) => {
    let plain = name.replace(/^void /, "").replace(/\(anonymous namespace\)::/g, "");
    const cut = plain.search(/[<(]/);
    if (cut > 0) plain = plain.slice(0, cut);
    const tail = plain.slice(plain.lastIndexOf("::") + 2);
    return plain.includes("::") && !name.startsWith("aten::") && tail ? tail : plain;
  };
  const shorts = data.names.map(short);

  const together = (lane, i) => lane.parts[i].reduce(
    ([many, took], [, ns, each]) => [many + each, took + ns], [0, 0]);

  const named = (lane, i, names) => {
    if (lane.parts[i]) {
      const [many, took] = together(lane, i);
      return `${counted(many)} ${lane.place === "idle" ? "gaps" : "events"}, ${lasting(took)}`;
    }
    return lane.name[i] >= 0 ? names[lane.name[i]] : kindOf(lane, i)[0];
  };
  const title = (lane, i) => named(lane, i, data.names);
  const label = (lane, i) => named(lane, i, shorts);

  // ---- what belongs together --------------------------------------------------------------------

  let works = null; // what each call launched, by its lane and its start
  const launchedBy = (lane, i) => {
    if (!works) {
      works = new Map();
      for (const other of lanes.filter((each) => each.place === "stream")) {
        for (let n = 0; n < other.size; n++) {
          const lead = other.lead(n);
          if (lead === null || other.by[n] < 0) continue;
          const key = `${other.by[n]}:${other.start[n] - lead}`;
          if (!works.has(key)) works.set(key, []);
          works.get(key).push({ lane: other, i: n });
        }
      }
    }
    return works.get(`${lane.number}:${lane.start[i]}`) || [];
  };

  const isCall = (lane, i) =>
    lane.place === "thread" && lane.kind[i] >= FIRST_CALL && !lane.parts[i];

  const callOf = (lane, i) => { // the deepest that begins when the launch did
    const by = lanes[lane.by[i]], lead = lane.lead(i);
    if (!by || lead === null) return null;
    const begin = lane.start[i] - lead;
    let found = null;
    for (let n = after(by.start, begin) - 1; n >= 0 && by.start[n] === begin; n--) {
      if (!found || by.row[n] >= by.row[found.i]) found = { lane: by, i: n };
    }
    return found;
  };

  const linked = ({ lane, i }) => {
    if (lane.place === "stream") return [callOf(lane, i)].filter(Boolean);
    return isCall(lane, i) ? launchedBy(lane, i) : [];
  };

  // ---- facts ------------------------------------------------------------------------------------

  const facts = ({ lane, i }) => {
    const made = [["in", lane.title]];
    if (lane.parts[i]) {
      const mix = lane.parts[i].map(([kind, ns, each]) =>
        `${data.kinds[lane.place][kind][0]} ${lasting(ns)} in ${counted(each)}`);
      made.push(["of them", mix.join("; ")]);
      made.push(["from", moment(lane.start[i])], ["to", moment(lane.end[i])]);
    } else {
      made.push(["takes", lasting(lane.end[i] - lane.start[i])], ["from", moment(lane.start[i])]);
      if (lane.place !== "idle") made.push(["kind", kindOf(lane, i)[0]]);
    }
    if (lane.phase[i] >= 0) made.push(["phase", data.phases[lane.phase[i]]]);
    return [...made, ...launchFacts(lane, i)];
  };

  const launchFacts = (lane, i) => {
    if (lane.place === "stream" && !lane.parts[i]) {
      const lead = lane.lead(i), call = callOf(lane, i);
      if (lead === null) return [["launched by", "nobody that was recorded"]];
      const who = call ? `${title(call.lane, call.i)} on ${call.lane.title}, ` : "";
      const when = `${lasting(Math.abs(lead))} ${lead < 0 ? "after" : "before"} it began`;
      return [["launched by", who + when]];
    }
    const made = isCall(lane, i) ? launchedBy(lane, i) : [];
    if (!made.length) return [];
    const [first] = made, wait = first.lane.start[first.i] - lane.start[i];
    const more = made.length > 1 ? ` and ${counted(made.length - 1)} more` : "";
    const what = `${label(first.lane, first.i)}${more} on ${first.lane.title}`;
    return [["launched", `${what}, ${lasting(wait)} later`]];
  };

  return {
    FIRST, LAST, OVERVIEW, TOP, CAPTION, RULER, tall: y + 4, lanes, after, nearest,
    OPERATOR, minus, lasting, moment, kindOf, title, label, linked, facts,
    kinds: data.kinds, steps: data.steps, host: data.host, window: data.window,
    finest: Math.max(0, ...data.lanes.map((lane) => lane.resolution)),
  };
};
