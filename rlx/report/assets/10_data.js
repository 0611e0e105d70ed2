// The data of the page: records, stages, bodies, and what changed from stage to stage.
const data = JSON.parse(document.getElementById("data").textContent);
const text = (i) => data.strings[i || 0];
const SAME = 0,
  ADDED = 1,
  CHANGED = 2,
  REWIRED = 3,
  REMOVED = 4;
const STATUS = ["", "added", "changed", "other operands", "removed"];

// A record: what a node is at some stage.
const recordOf = (r) => {
  const q = data.records[r];
  const list = (v) => (Array.isArray(v) ? v : v === undefined ? [] : [v]);
  return {
    op: text(q[0]),
    attrs: text(q[1]),
    types: list(q[2]).map(text),
    inputs: q[3].map((v) => (Array.isArray(v) ? v : [v, 0])),
    label: text(q[4]),
    file: text(q[5]),
    line: q[6] || 0,
    pass: text(q[7]),
    from: (q[8] || []).map(text),
    bodies: q[9] || [],
  };
};
const cachedRecords = new Map();
const record = (r) => {
  let found = cachedRecords.get(r);
  if (!found) cachedRecords.set(r, (found = recordOf(r)));
  return found;
};
const LEAVES = new Set(["input", "param", "state", "constant"]);
const CONTROL = new Set(["if", "while", "scan", "call"]);
const VIEWS = new Set(["reshape", "transpose", "slice", "expand", "transfer", "narrow"]);
const family = (op) =>
  op === "input" || op === "state"
    ? "input"
    : LEAVES.has(op)
      ? "leaf"
      : CONTROL.has(op)
        ? "control"
        : op.startsWith("fused") || op.endsWith("region")
          ? "fused"
          : /dot|matmul|attention|conv/.test(op)
            ? "dot"
            : VIEWS.has(op)
              ? "view"
              : "other";
const leafName = (rec) => {
  const found = LEAVES.has(rec.op) && /name = "((?:[^"\\]|\\.)*)"/.exec(rec.attrs);
  return found ? found[1] : "";
};

// A graph as it is shown: a stage, or the body of an op. Nodes have a position, which is their number %i, and an
// entity.
class Scope {
  constructor(name, order, recordOfEntity, roots, stage) {
    ((this.name = name),
      (this.order = order),
      (this.records = recordOfEntity),
      (this.roots = roots),
      (this.stage = stage));
    this.size = order.length;
    this.rootsOf = new Map();
    for (const [what, e, r] of roots) {
      if (!this.rootsOf.has(e)) this.rootsOf.set(e, []);
      this.rootsOf.get(e).push(r ? `${what} (#${r})` : what);
    }
  }
  rec(i) {
    return record(this.records[this.order[i]]);
  }
  // Position of an entity, or -1.
  at(e) {
    if (!this.positions) {
      this.positions = new Map();
      for (let i = 0; i < this.size; ++i) this.positions.set(this.order[i], i);
    }
    const i = this.positions.get(e);
    return i === undefined ? -1 : i;
  }
  inputs(i) {
    return data.records[this.records[this.order[i]]][3];
  }
  // Readers of each node, as one list with its borders.
  users() {
    if (this.readers) return this.readers;
    const begin = new Int32Array(this.size + 1),
      each = (f) => {
        for (let i = 0; i < this.size; ++i) for (const v of this.inputs(i)) f(this.at(Array.isArray(v) ? v[0] : v), i);
      };
    each((from) => ++begin[from + 1]);
    for (let i = 0; i < this.size; ++i) begin[i + 1] += begin[i];
    const list = new Int32Array(begin[this.size]),
      next = begin.slice();
    each((from, to) => (list[next[from]++] = to));
    return (this.readers = { begin, list });
  }
  usersOf(i) {
    const { begin, list } = this.users();
    return [...new Set(list.subarray(begin[i], begin[i + 1]))];
  }
  // What a person calls the node.
  title(i) {
    const rec = this.rec(i),
      name = leafName(rec);
    return `%${i} ${rec.op}${name ? ` "${name}"` : rec.label ? ` @${rec.label}` : ""}`;
  }
}

const stages = [];
{
  const current = [];
  let roots = [];
  for (const s of data.stages) {
    const before = stages.length ? stages[stages.length - 1] : null;
    const order = [];
    for (let i = 0; i < s.order.length; i += 2) for (let k = 0; k < s.order[i + 1]; ++k) order.push(s.order[i] + k);
    for (let i = 0; i < s.set.length; i += 2) current[s.set[i]] = s.set[i + 1];
    roots = s.roots || roots;
    const scope = new Scope(
      s.name,
      Int32Array.from(order),
      Int32Array.from(current, (r) => (r === undefined ? -1 : r)),
      roots,
      stages.length,
    );
    const status = new Uint8Array(current.length); // by entity
    const count = { added: 0, removed: 0, changed: 0, rewired: 0 };
    const removed = [];
    if (before) {
      const old = before.scope;
      for (const e of scope.order) {
        if (old.at(e) < 0) ((status[e] = ADDED), ++count.added);
        else if (old.records[e] !== scope.records[e]) {
          const a = data.records[old.records[e]],
            b = data.records[scope.records[e]];
          const own = a[1] !== b[1] || String(a[2]) !== String(b[2]) || String(a[9]) !== String(b[9]);
          status[e] = own ? CHANGED : REWIRED;
          ++count[own ? "changed" : "rewired"];
        }
      }
      for (const e of old.order) if (scope.at(e) < 0) removed.push(e);
      count.removed = removed.length;
    }
    stages.push({
      name: s.name,
      what: s.what,
      scope,
      status,
      removed: new Set(removed),
      count,
      graph: s.graph,
      before,
    });
  }
}
const bodyScopes = [];
// The body of that number as a scope.
const bodyScope = (number) => {
  if (!bodyScopes[number]) {
    const b = data.bodies[number];
    bodyScopes[number] = new Scope(
      `@${b.graph}`,
      Int32Array.from(b.records, (_, i) => i),
      Int32Array.from(b.records),
      b.roots,
      -1,
    );
  }
  return bodyScopes[number];
};
// The nodes that a pass took away and those that it put in their place, by what both say of where they come from: a new
// node names the nodes that went into it, or has the history of them (one that many share tells nothing).
const replacements = (stage) => {
  if (stage.replacements) return stage.replacements;
  const before = new Map(),
    after = new Map(),
    gone = new Map();
  const note = (map, key, value) => {
    if (!map.has(key)) map.set(key, new Set());
    map.get(key).add(value);
  };
  const old = stage.before && stage.before.scope;
  for (const e of stage.removed) {
    const i = old.at(e),
      rec = old.rec(i);
    note(gone, `%${i} ${rec.op}`, i);
    if (rec.from.length) note(gone, rec.from[rec.from.length - 1], i);
  }
  for (let i = 0; gone.size && i < stage.scope.size; ++i) {
    if (stage.status[stage.scope.order[i]] !== ADDED) continue;
    for (const from of stage.scope.rec(i).from)
      if (gone.get(from)?.size <= 64) for (const k of gone.get(from)) (note(before, i, k), note(after, k, i));
  }
  return (stage.replacements = { before, after });
};
const replacedBy = (stage, i) => [...(replacements(stage).before.get(i) || [])].sort((a, b) => a - b);
const becameOf = (stage, k) => [...(replacements(stage).after.get(k) || [])];

const bytesText = (n) => {
  const units = ["B", "KB", "MB", "GB", "TB"];
  let u = 0;
  for (; n >= 1024 && u < 4; ++u) n /= 1024;
  return `${u === 0 || n >= 1000 ? Math.round(n) : n.toFixed(1)} ${units[u]}`;
};
const timeText = (ns) => (ns >= 1e6 ? `${(ns / 1e6).toFixed(2)} ms` : `${(ns / 1e3).toFixed(ns < 1e4 ? 2 : 1)} µs`);
// An element with attributes and children; texts are text, never markup.
const el = (tag, attrs = {}, ...children) => {
  const e = document.createElement(tag);
  for (const [k, v] of Object.entries(attrs)) {
    if (k.startsWith("on")) e.addEventListener(k.slice(2), v);
    else if (v !== null && v !== undefined && v !== false) e.setAttribute(k, v === true ? "" : v);
  }
  for (const c of children.flat(9)) if (c !== null && c !== undefined) e.append(c);
  return e;
};
const byId = (id) => document.getElementById(id);
