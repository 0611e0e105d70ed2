// The panel on the right: all about the node that was chosen, with ways to its neighbours.
const details = {
  // What stands there before a node is chosen.
  nothing() {
    const inside = graphTab.bodies[graphTab.bodies.length - 1];
    const s = inside
        ? { name: `body ${inside.scope.name}`, what: `of ${inside.of}`, scope: inside.scope }
        : graphTab.stage,
      counts = new Map();
    for (let i = 0; i < s.scope.size; ++i) counts.set(s.scope.rec(i).op, (counts.get(s.scope.rec(i).op) || 0) + 1);
    const before = new Map();
    if (s.before)
      for (let i = 0; i < s.before.scope.size; ++i) {
        const op = s.before.scope.rec(i).op;
        before.set(op, (before.get(op) || 0) + 1);
      }
    const rows = [...new Set([...counts.keys(), ...before.keys()])].map((op) => [
      op,
      counts.get(op) || 0,
      s.before ? (counts.get(op) || 0) - (before.get(op) || 0) : 0,
    ]);
    rows.sort((a, b) => Math.abs(b[2]) - Math.abs(a[2]) || b[1] - a[1]);
    byId("details").replaceChildren(
      el("h2", {}, s.name),
      el("p", { class: "soft" }, s.what || "a stage of the compile"),
      el("h3", {}, "Ops"),
      el(
        "table",
        { class: "plain" },
        rows
          .slice(0, 60)
          .map(([op, n, d]) =>
            el(
              "tr",
              {},
              el("td", {}, el("a", { onclick: () => search.run(op) }, op)),
              el("td", { class: "num" }, String(n)),
              el("td", { class: `num ${d > 0 ? "add" : d < 0 ? "del" : "soft"}` }, d ? (d > 0 ? "+" : "") + d : ""),
            ),
          ),
      ),
      el("h3", {}, "Keys"),
      el(
        "dl",
        {},
        [
          ["/", "search"],
          ["[ ]", "previous, next stage"],
          ["n p", "next, previous change"],
          ["f", "fit"],
          ["+ -", "zoom (or the wheel)"],
          ["1 - 5", "tabs"],
          ["Esc", "clear"],
        ].map(([k, what]) => [
          el(
            "dt",
            {},
            k.split(" ").map((key) => [el("kbd", {}, key), " "]),
          ),
          el("dd", {}, what),
        ]),
      ),
    );
  },
  // A link to a node of a scope.
  link(scope, i, go) {
    return el("a", { onclick: () => go(i), title: scope.rec(i).types.join(", ") }, scope.title(i));
  },
  operandsText(scope, rec) {
    return rec.inputs.map(([from, r]) => scope.title(scope.at(from)) + (r ? `#${r}` : "")).join(", ");
  },
  list(title, items) {
    const most = 40;
    if (!items.length) return [];
    const rest = items.length - most;
    const ul = el(
      "ul",
      {},
      items.slice(0, most).map((item) => el("li", {}, item())),
    );
    if (rest > 0) {
      const more = el(
        "a",
        {
          onclick: () => {
            more.parentElement.remove();
            for (const item of items.slice(most)) ul.append(el("li", {}, item()));
          },
        },
        `and ${rest} more`,
      );
      ul.append(el("li", {}, more));
    }
    return [el("h3", {}, `${title} (${items.length})`), ul];
  },
  node(scope, i, status, go) {
    const rec = scope.rec(i),
      e = scope.order[i],
      fact = (k, v) => (v ? [el("dt", {}, k), el("dd", {}, v)] : []);
    const name = leafName(rec);
    const inputs = rec.inputs.map(([from, r], k) => () => [
      el("span", { class: "soft" }, `${k}: `),
      details.link(scope, scope.at(from), go),
      r ? ` #${r}` : "",
      el("span", { class: "soft" }, ` ${scope.rec(scope.at(from)).types[r] || ""}`),
    ]);
    const stage = scope.stage >= 0 ? stages[scope.stage] : null;
    const replaced = stage && status === ADDED ? replacedBy(stage, i) : [];
    // What it is on the other side of the pass.
    const now = graphTab.stage;
    const side = status === CHANGED || status === REWIRED ? (scope === now.scope ? now.before.scope : now.scope) : null;
    const was = side && record(side.records[e]);
    byId("details").replaceChildren(
      ...[
        el(
          "h2",
          {},
          `%${i} ${rec.op}`,
          " ",
          status ? el("span", { class: `pill ${["", "add", "chg", "chg", "del"][status]}` }, STATUS[status]) : "",
        ),
        el(
          "dl",
          {},
          fact("name", name),
          fact(
            rec.types.length > 1 ? "types" : "type",
            rec.types.map((t, r) => el("div", { class: "mono" }, rec.types.length > 1 ? `#${r} ${t}` : t)),
          ),
          fact("attributes", rec.attrs && el("code", {}, rec.attrs)),
          fact("label", rec.label),
          fact("source", rec.line ? `${rec.file}:${rec.line}` : ""),
          fact("made by", rec.pass),
          fact("is", (scope.rootsOf.get(e) || []).join(", ")),
        ),
        was
          ? [
              el("h3", {}, side === now.scope ? "After this pass" : "Before this pass"),
              el(
                "p",
                { class: "mono" },
                status === REWIRED
                  ? `operands: ${details.operandsText(side, was)}`
                  : `${was.types.join(", ")} ${was.attrs}`,
              ),
            ]
          : [],
        rec.bodies.length
          ? [
              el("h3", {}, "Bodies"),
              el(
                "ul",
                {},
                rec.bodies.map((b) =>
                  el(
                    "li",
                    {},
                    el("a", { onclick: () => graphTab.openBody(b, scope.title(i)) }, `open @${data.bodies[b].graph}`),
                    el("span", { class: "soft" }, ` ${data.bodies[b].records.length} nodes`),
                  ),
                ),
              ),
            ]
          : [],
        status === REMOVED
          ? details.list(
              "Became",
              becameOf(graphTab.stage, i).map(
                (k) => () => el("a", { onclick: () => graphTab.showAfter(k) }, graphTab.stage.scope.title(k)),
              ),
            )
          : [],
        replaced.length
          ? details.list(
              "Replaces, in the stage before",
              replaced.map(
                (k) => () => el("a", { onclick: () => graphTab.showBefore(k) }, stage.before.scope.title(k)),
              ),
            )
          : [],
        rec.from.length
          ? details.list(
              "Comes from",
              rec.from.map((f) => () => el("code", {}, f)),
            )
          : [],
        details.list("Operands", inputs),
        details.list(
          "Readers",
          scope.usersOf(i).map((k) => () => details.link(scope, k, go)),
        ),
        scope.stage === data.planned ? [...memoryTab.about(i), ...kernelsTab.about(i)] : [],
      ].flat(9),
    );
  },
};
