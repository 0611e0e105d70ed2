// Where nodes are drawn: rows by the longest way from the inputs, places in a row by their neighbours. Linear in nodes
// and edges but for sorting rows. Edges over many rows become names at their reader, so no picture drowns in lines.
const NODE_W = 172,
  NODE_H = 40,
  GAP_X = 20,
  ROW_H = 84,
  MAX_SPAN = 14,
  MAX_ROW = 40,
  MAX_BEND = 60;

const layoutOf = (scope) => {
  if (scope.layout) return scope.layout;
  const n = scope.size,
    level = new Int32Array(n),
    late = new Uint8Array(n),
    inputs = [];
  for (let i = 0; i < n; ++i) {
    const ins = [...new Set(scope.inputs(i).map((v) => scope.at(Array.isArray(v) ? v[0] : v)))];
    inputs.push(ins);
    let l = 0;
    for (const k of ins) l = Math.max(l, level[k] + 1);
    level[i] = l;
    const op = scope.rec(i).op; // what no input reaches stands right above its reader
    late[i] = ins.length ? ins.every((k) => late[k]) : op !== "input" && op !== "state";
  }
  const earliest = new Int32Array(n).fill(1 << 30);
  for (let i = n - 1; i >= 0; --i) {
    if (earliest[i] < 1 << 30 && (late[i] || !inputs[i].length)) level[i] = Math.max(level[i], earliest[i] - 1);
    for (const k of inputs[i]) earliest[k] = Math.min(earliest[k], level[i]);
  }
  // Rows: levels, wide ones cut into several.
  const counts = [];
  for (let i = 0; i < n; ++i) counts[level[i]] = (counts[level[i]] || 0) + 1;
  const first = [];
  let rows = 0;
  for (let l = 0; l < counts.length; ++l) {
    first[l] = rows;
    rows += Math.max(1, Math.ceil((counts[l] || 0) / Math.max(MAX_ROW, Math.ceil(Math.sqrt((counts[l] || 0) / 3)))));
  }
  const seen = new Int32Array(counts.length),
    row = new Int32Array(n);
  for (let i = 0; i < n; ++i) {
    const l = level[i],
      last = l + 1 < first.length ? first[l + 1] : rows,
      wide = last - first[l];
    row[i] = first[l] + Math.floor((seen[l]++ * wide) / counts[l]);
  }
  // Items: nodes, then the bends of edges over several rows.
  const itemRow = Array.from(row),
    above = inputs.map(() => []),
    below = inputs.map(() => []),
    far = inputs.map(() => []);
  const bends = new Map();
  let budget = 3 * n + 1000;
  const bend = (source, at) => {
    let list = bends.get(source);
    if (!list) bends.set(source, (list = []));
    for (let r = row[source] + 1 + list.length; r <= at; ++r) {
      const item = itemRow.length,
        up = list.length ? list[list.length - 1] : source;
      (itemRow.push(r), above.push([up]), below.push([]));
      below[up].push(item);
      list.push(item);
      --budget;
    }
    return list[at - row[source] - 1];
  };
  const readers = new Int32Array(n);
  for (const ins of inputs) for (const k of ins) ++readers[k];
  for (let i = 0; i < n; ++i)
    for (const k of inputs[i]) {
      const span = row[i] - row[k],
        crowd = Math.max(readers[k], inputs[i].length) > MAX_BEND;
      if (span > MAX_SPAN || span < 1 || (span > 1 && (budget < span || crowd))) {
        far[i].push(k);
        continue;
      }
      const up = span === 1 ? k : bend(k, row[i] - 1);
      (above[i].push(up), below[up].push(i));
    }
  const m = itemRow.length,
    x = new Float64Array(m),
    members = Array.from({ length: rows }, () => []);
  for (let i = 0; i < m; ++i) members[itemRow[i]].push(i);
  const width = (i) => (i < n ? NODE_W : 14);
  for (const list of members) {
    let at = 0;
    for (const i of list) ((x[i] = at + width(i) / 2), (at += width(i) + GAP_X));
    for (const i of list) x[i] -= at / 2;
  }
  // Nearest places to the wanted ones that keep the order and do not overlap: isotonic regression, in linear time.
  const place = (list, want) => {
    list.sort((a, b) => want[a] - want[b] || a - b);
    const blocks = [];
    let offset = 0,
      before = -1;
    for (const i of list) {
      if (before >= 0) offset += (width(before) + width(i)) / 2 + GAP_X;
      before = i;
      let b = { sum: want[i] - offset, n: 1, first: offset, items: [[i, offset]] };
      while (blocks.length && blocks[blocks.length - 1].sum / blocks[blocks.length - 1].n > b.sum / b.n) {
        const a = blocks.pop();
        for (const item of b.items) a.items.push(item);
        ((a.sum += b.sum), (a.n += b.n), (b = a));
      }
      blocks.push(b);
    }
    for (const b of blocks) for (const [i, o] of b.items) x[i] = b.sum / b.n + o;
  };
  const want = new Float64Array(m);
  const mean = (list, otherwise) => {
    if (!list.length) return otherwise;
    let s = 0;
    for (const k of list) s += x[k];
    return s / list.length;
  };
  for (let sweep = 0; sweep < 4; ++sweep) {
    for (let r = 0; r < rows; ++r) {
      for (const i of members[r]) want[i] = mean(above[i], sweep ? mean(below[i], x[i]) : x[i]);
      place(members[r], want);
    }
    for (let r = rows - 1; r >= 0; --r) {
      for (const i of members[r]) want[i] = (mean(below[i], x[i]) + mean(above[i], mean(below[i], x[i]))) / 2;
      place(members[r], want);
    }
  }
  let low = Infinity,
    high = -Infinity;
  for (let i = 0; i < m; ++i)
    ((low = Math.min(low, x[i] - width(i) / 2)), (high = Math.max(high, x[i] + width(i) / 2)));
  if (!m) ((low = 0), (high = 1));
  for (const list of members) list.sort((a, b) => x[a] - x[b]);
  return (scope.layout = { x, rows, row: itemRow, members, above, far, nodes: n, low, high, height: rows * ROW_H });
};
