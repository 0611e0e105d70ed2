// Kernels with times and rooflines, the fusion report, and the reports as text.
const kernelsTab = {
  by: "step",
  rows() {
    return data.kernels.times.map(([node, op, kernel, ns, floor, flops, bytes], k) => ({
      k,
      node,
      op: text(op),
      kernel: text(kernel),
      ns,
      floor,
      flops,
      bytes,
      n: 1,
    }));
  },
  init() {
    this.render();
  },
  render() {
    const root = byId("tab-kernels"),
      steps = this.rows();
    if (!steps.length) {
      root.replaceChildren(
        el(
          "div",
          { class: "empty" },
          el("p", {}, "There are no times: the program was compiled and not run."),
          el("p", {}, "On the command line: ", el("code", {}, "rlx inspect GRAPH --html report.html --profile")),
          el("p", {}, "In a program: pass the result of median_profile to inspect_html as ReportOptions::times."),
        ),
      );
      return;
    }
    let rows = steps;
    if (this.by === "kernel") {
      const groups = new Map();
      for (const s of steps) {
        const key = `${s.op}\n${s.kernel}`,
          g = groups.get(key) || { ...s, k: -1, node: -1, n: 0, ns: 0, floor: 0, flops: 0, bytes: 0 };
        for (const f of ["n", "ns", "floor", "flops", "bytes"]) g[f] += s[f];
        groups.set(key, g);
      }
      rows = [...groups.values()].sort((a, b) => b.ns - a.ns);
    }
    const all = steps.reduce((a, s) => ({ ns: a.ns + s.ns, floor: a.floor + s.floor, flops: a.flops + s.flops }), {
      ns: 0,
      floor: 0,
      flops: 0,
    });
    const most = Math.max(...rows.map((r) => r.ns)),
      floors = all.floor > 0,
      scope = stages[data.planned].scope;
    const [gflops, ...bands] = data.kernels.limits;
    const card = (value, what) => el("div", { class: "card" }, el("b", {}, value), what);
    const table = new Table(
      [
        {
          name: this.by === "step" ? "step" : "steps",
          width: "60px",
          num: true,
          cell: (r) => String(r.k < 0 ? r.n : r.k),
          sort: (r) => (r.k < 0 ? r.n : r.k),
        },
        { name: "op", width: "190px", cell: (r) => (r.node >= 0 ? `%${r.node} ${r.op}` : r.op), sort: (r) => r.op },
        { name: "kernel", width: "240px", mono: true, cell: (r) => r.kernel, sort: (r) => r.kernel },
        { name: "time", width: "90px", num: true, cell: (r) => timeText(r.ns), sort: (r) => r.ns },
        {
          name: "roofline",
          width: "90px",
          num: true,
          cell: (r) => (floors ? timeText(r.floor) : "-"),
          sort: (r) => r.floor,
        },
        {
          name: "time / roofline",
          width: "90px",
          num: true,
          cell: (r) => (r.floor > 0 ? `${(r.ns / r.floor).toFixed(2)}×` : "-"),
          sort: (r) => (r.floor > 0 ? r.ns / r.floor : 0),
        },
        {
          name: "share",
          width: "70px",
          num: true,
          cell: (r) => `${((100 * r.ns) / all.ns).toFixed(1)} %`,
          sort: (r) => r.ns,
        },
        {
          name: "time (dark: roofline)",
          width: "180px",
          cell: (r) =>
            el(
              "span",
              { class: "meter" },
              el("i", { style: `width:${(100 * r.ns) / most}%` }),
              el("i", { style: `width:${(100 * Math.min(r.floor, r.ns)) / most}%` }),
            ),
        },
        {
          name: "GFLOP/s",
          width: "80px",
          num: true,
          cell: (r) => (r.flops / Math.max(r.ns, 1)).toFixed(1),
          sort: (r) => r.flops / Math.max(r.ns, 1),
        },
        {
          name: "GB/s",
          width: "70px",
          num: true,
          cell: (r) => (r.bytes / Math.max(r.ns, 1)).toFixed(1),
          sort: (r) => r.bytes / Math.max(r.ns, 1),
        },
        { name: "label", width: "240px", cell: (r) => (r.node >= 0 ? scope.rec(r.node).label : "") },
      ],
      {
        label: "kernels",
        onpick: (r) => r.node >= 0 && details.node(scope, r.node, SAME, (k) => graphTab.showPlanned(k)),
      },
    );
    table.set(rows);
    const by = (value, label) =>
      el(
        "button",
        {
          "data-by": value,
          "aria-pressed": String(this.by === value),
          onclick: () => {
            this.by = value;
            this.render();
          },
        },
        label,
      );
    root.replaceChildren(
      el(
        "div",
        { class: "cards" },
        card(timeText(all.ns), "all kernels"),
        floors ? card(timeText(all.floor), "their roofline") : "",
        floors ? card(`${(all.ns / all.floor).toFixed(2)}×`, "time / roofline") : "",
        card((all.flops / all.ns).toFixed(1), "GFLOP/s"),
        card(String(steps.length), "steps"),
      ),
      el(
        "p",
        { class: "note" },
        `${data.kernels.note}${data.kernels.note ? ". " : ""}`,
        floors
          ? `Roofline: all arithmetic at ${gflops.toFixed(1)} GFLOP/s or all bytes at the bandwidth of a buffer that ` +
              `holds them (${bands.map(([b, g]) => `${bytesText(b)}: ${g.toFixed(0)} GB/s`).join(", ")}).`
          : "The roofline was not measured.",
      ),
      el("div", {}, el("span", { class: "group" }, by("step", "by step"), by("kernel", "by kernel"))),
      table.el,
    );
  },
  about(i) {
    const found = this.rows().find((r) => r.node === i);
    return found
      ? [
          el("h3", {}, "Kernel"),
          el("div", { class: "mono" }, found.kernel),
          el(
            "div",
            {},
            timeText(found.ns),
            found.floor > 0 ? `, roofline ${timeText(found.floor)} (${(found.ns / found.floor).toFixed(2)}×)` : "",
          ),
        ]
      : [];
  },
};

const fusionTab = {
  filter: "",
  init() {
    this.render();
  },
  // Where the node of a miss is: its stage when it is known to be that node.
  target(m) {
    const [, , label, , , node, stage, inBody] = m;
    if (inBody || stage < 0 || !stages[stage] || node >= stages[stage].scope.size) return null;
    const rec = stages[stage].scope.rec(node);
    return label === rec.label || label === leafName(rec) || label === `%${node}` ? [stage, node] : null;
  },
  render() {
    const f = data.fusion,
      root = byId("tab-fusion"),
      card = (value, what) => el("div", { class: "card" }, el("b", {}, value), what);
    const reasons = new Map();
    for (const m of f.missed) reasons.set(m[1], (reasons.get(m[1]) || 0) + 1);
    const fused = f.fused.reduce((s, p) => s + p[1], 0),
      shown = f.missed.filter((m) => !this.filter || m[1] === this.filter);
    const most = this.more || 200;
    const link = (m) => {
      const at = this.target(m);
      return at
        ? el(
            "a",
            {
              onclick: () => {
                tabs.show("graph");
                graphTab.choose(...at);
              },
            },
            `%${m[5]} in ${stages[at[0]].name}`,
          )
        : el("span", { class: "soft" }, `%${m[5]}${m[7] ? " of a body" : ""}`);
    };
    root.replaceChildren(
      ...[
        el(
          "div",
          { class: "cards" },
          card(`${f.before} → ${f.after}`, "nodes, before and after fusion"),
          card(String(fused), "fused"),
          card(String(f.missed.length), "missed"),
        ),
        f.fused.length
          ? el(
              "div",
              {},
              el("h2", {}, "Fused"),
              el(
                "table",
                { class: "plain" },
                f.fused.map(([p, n]) => el("tr", {}, el("td", {}, p), el("td", { class: "num" }, String(n)))),
              ),
            )
          : el("p", { class: "note" }, "Nothing was fused."),
        el("h2", {}, f.missed.length ? "Missed: patterns that began to match and stopped" : "No pattern was missed"),
        reasons.size > 1
          ? el(
              "div",
              { class: "chips" },
              [["", f.missed.length], ...reasons].map(([r, n]) =>
                el(
                  "button",
                  {
                    "aria-pressed": String(this.filter === r),
                    onclick: () => {
                      this.filter = r;
                      this.render();
                    },
                  },
                  `${r || "all"} ${n}`,
                ),
              ),
            )
          : null,
        shown
          .slice(0, most)
          .map((m) =>
            el(
              "div",
              { class: "miss" },
              el("b", {}, m[0]),
              " at ",
              link(m),
              m[2] && m[2] !== `%${m[5]}` ? ` ${m[2]}` : "",
              " ",
              el("span", { class: "pill chg" }, m[1]),
              m[3] ? el("p", {}, m[3]) : null,
              m[4] ? el("p", { class: "hint" }, m[4]) : null,
            ),
          ),
        shown.length > most
          ? el(
              "button",
              {
                onclick: () => {
                  this.more = most + 500;
                  this.render();
                },
              },
              `${shown.length - most} more`,
            )
          : null,
        el("h2", {}, "Ops whose number changed"),
        el(
          "table",
          { class: "plain" },
          el("tr", {}, el("th", {}, "op"), el("th", {}, "before"), el("th", {}, "after"), el("th", {}, "")),
          f.counts
            .filter(([, a, b]) => a !== b)
            .map(([op, a, b]) =>
              el(
                "tr",
                {},
                el("td", {}, op),
                el("td", { class: "num" }, String(a)),
                el("td", { class: "num" }, String(b)),
                el("td", { class: `num ${b > a ? "add" : "del"}` }, `${b > a ? "+" : ""}${b - a}`),
              ),
            ),
        ),
      ]
        .flat(9)
        .filter(Boolean),
    );
  },
};

const reportsTab = {
  init() {
    byId("tab-reports").replaceChildren(
      ...[
        data.dispatch.length
          ? el(
              "div",
              {},
              el("h2", {}, "How each kind of op reaches the device"),
              el(
                "table",
                { class: "plain" },
                el(
                  "tr",
                  {},
                  ["op", "path", "nodes", "why"].map((h) => el("th", {}, h)),
                ),
                data.dispatch.map(([op, path, n, why]) =>
                  el(
                    "tr",
                    {},
                    el("td", {}, op),
                    el("td", {}, el("span", { class: path === "native" ? "" : "chg" }, path)),
                    el("td", { class: "num" }, String(n)),
                    el("td", { class: "soft" }, why),
                  ),
                ),
              ),
            )
          : null,
        data.prepare >= 0
          ? el(
              "div",
              {},
              el("h2", {}, "Weight preparation"),
              el(
                "p",
                {},
                el("a", { onclick: () => graphTab.openBody(data.prepare, "weight preparation") }, "open its graph"),
                `: ${data.bodies[data.prepare].records.length} nodes, run once`,
              ),
            )
          : null,
        ...data.reports
          .filter((r) => r[1].trim())
          .map(([name, body]) => el("div", {}, el("h2", {}, name), el("pre", { class: "frame" }, body))),
      ].filter(Boolean),
    );
  },
};
