// The memory plan: steps to the right, bytes upwards, a rectangle for each buffer over its life.
const HOW = ["its own", "in place", "view"];

class MemoryView extends Canvas {
  constructor(plan, scope, onpick) {
    super(`memory of ${plan.buffers.length} values over ${plan.steps.length} steps`, true);
    ((this.plan = plan), (this.scope = scope), (this.onpick = onpick), (this.picked = null));
    ((this.left = 74), (this.top = 26), (this.bottom = 22), (this.most = 1e4), (this.flat = true));
    this.base = [];
    let at = 0;
    for (const [bytes] of plan.arenas) (this.base.push(at), (at += bytes));
    this.bytes = Math.max(at, 1);
    this.boxes = plan.buffers.filter((b) => b[7] !== 2 && b[4] > 0);
    for (const [node, arena, offset, bytes, step] of plan.held)
      this.boxes.push([node, -1, arena, offset, bytes, step, step, 3]);
    // Live bytes by step, as a line.
    const delta = new Float64Array(plan.steps.length + 3);
    for (const b of this.boxes)
      ((delta[Math.max(b[5], 0)] += b[4]), (delta[Math.min(Math.max(b[6], b[5]), plan.steps.length) + 1] -= b[4]));
    for (const b of this.boxes)
      if (b[7] === 1) {
        // over what is dead at that step: counted once
        const step = Math.max(b[5], 0);
        ((delta[step] -= b[4]), (delta[step + 1] += b[4]));
      }
    this.live = [];
    let sum = 0;
    this.peak = [0, 0];
    for (let s = 0; s <= plan.steps.length; ++s) {
      sum += delta[s];
      this.live.push(sum);
      if (sum > this.peak[0]) this.peak = [sum, s];
    }
  }
  fit() {
    const steps = Math.max(1, this.plan.steps.length);
    ((this.sx = (this.width - this.left - 14) / steps), (this.tx = this.left));
    ((this.sy = (this.height - this.top - this.bottom - 10) / this.bytes), (this.ty = this.height - this.bottom));
    this.least = this.sx / 2;
    this.later();
  }
  place(b) {
    const x = Math.max(b[5], 0) * this.sx + this.tx,
      end = (Math.min(b[6], this.plan.steps.length) + 1) * this.sx + this.tx;
    const low = (this.base[b[2]] || 0) + b[3];
    return [x, this.ty - (low + b[4]) * this.sy, Math.max(1, end - x), Math.max(1, b[4] * this.sy)];
  }
  draw() {
    if (!this.width) return;
    const ctx = this.begin(),
      p = this.plan,
      n = p.steps.length;
    ctx.save();
    ctx.beginPath();
    ctx.rect(this.left, this.top, this.width - this.left, this.height - this.top - this.bottom);
    ctx.clip();
    ctx.font = "11px system-ui, sans-serif";
    ctx.textBaseline = "middle";
    for (const b of this.boxes) {
      const [x, y, w, h] = this.place(b);
      if (x > this.width || x + w < this.left || y > this.height || y + h < this.top) continue;
      const op = this.scope.rec(b[0]).op;
      ctx.globalAlpha = this.picked && this.picked !== b ? 0.4 : 0.82;
      ctx.fillStyle = colour(b[7] === 3 ? "control" : family(op));
      const gap = w > 4 && h > 4 ? 0.5 : 0;
      ctx.fillRect(x + gap, y + gap, Math.max(w - 2 * gap, 0.7), Math.max(h - 2 * gap, 0.7));
      ctx.globalAlpha = 1;
      if (b[7] === 1 && w > 3 && h > 3) {
        // a notch where it begins over a dead value
        ctx.fillStyle = colour("canvas");
        ctx.beginPath();
        (ctx.moveTo(x, y + h), ctx.lineTo(x, y + h - Math.min(9, h)), ctx.lineTo(x + Math.min(9, w), y + h));
        ctx.fill();
      }
      if (this.picked === b) {
        ctx.strokeStyle = colour("text");
        ctx.lineWidth = 2;
        ctx.strokeRect(x, y, w, h);
      }
      if (w > 46 && h > 13) {
        ctx.fillStyle = colour("panel");
        const from = Math.max(x, this.left);
        ctx.fillText(
          fitText(ctx, `%${b[0]} ${op}`, x + w - from - 10),
          from + 6,
          Math.min(Math.max(y + h / 2, this.top + 8), y + h - 6),
        );
      }
    }
    ctx.globalAlpha = 1;
    // Live bytes.
    ctx.strokeStyle = colour("text");
    ctx.globalAlpha = 0.7;
    ctx.lineWidth = 1.2;
    ctx.beginPath();
    const first = Math.max(0, Math.floor((this.left - this.tx) / this.sx)),
      last = Math.min(n, Math.ceil((this.width - this.tx) / this.sx));
    for (let s = first; s <= last && p.arenas.length === 1; ++s) {
      const y = this.ty - this.live[s] * this.sy;
      (ctx.lineTo(s * this.sx + this.tx, y), ctx.lineTo((s + 1) * this.sx + this.tx, y));
    }
    ctx.stroke();
    ctx.globalAlpha = 1;
    if (p.arenas.length) {
      if (p.arenas.length === 1) this.drawPeak(ctx, this.ty - this.peak[0] * this.sy);
      ctx.strokeStyle = colour("line");
      for (const base of [...this.base, this.bytes]) {
        const at = this.ty - base * this.sy;
        ctx.beginPath();
        (ctx.moveTo(this.left, at), ctx.lineTo(this.width, at));
        ctx.stroke();
      }
    }
    ctx.restore();
    this.drawAxes(ctx);
  }
  // Brings the life of a buffer into sight.
  show(b) {
    this.picked = b;
    if (b) {
      const [x, , w] = this.place(b);
      if (x < this.left || x + w > this.width) this.tx += this.left + (this.width - this.left) / 3 - x;
    }
    this.later();
  }
  drawPeak(ctx, y) {
    ctx.setLineDash([6, 4]);
    ctx.strokeStyle = colour("removed");
    ctx.beginPath();
    (ctx.moveTo(this.left, y), ctx.lineTo(this.width, y));
    ctx.stroke();
    ctx.setLineDash([]);
    ctx.textAlign = "right";
    const label = `most live at once: ${bytesText(this.peak[0])}, at step ${this.peak[1]}`;
    const wide = ctx.measureText(label).width;
    ctx.fillStyle = colour("panel");
    ctx.fillRect(this.width - 14 - wide, y + 4, wide + 8, 16);
    ctx.fillStyle = colour("removed");
    ctx.fillText(label, this.width - 10, y + 12);
    ctx.textAlign = "left";
  }
  drawAxes(ctx) {
    const p = this.plan,
      n = p.steps.length;
    ctx.fillStyle = colour("soft");
    ctx.font = "11px system-ui, sans-serif";
    ctx.textAlign = "right";
    ctx.textBaseline = "middle";
    let unit = 1;
    while (unit * this.sy < 34) unit *= 2;
    const low = Math.max(0, Math.ceil((this.ty - this.height + this.bottom) / this.sy / unit)) * unit;
    for (let b = low; b <= this.bytes; b += unit) {
      const y = this.ty - b * this.sy;
      if (y < this.top + 4) break;
      if (p.arenas.length < 2) ctx.fillText(bytesText(b), this.left - 6, y);
    }
    if (p.arenas.length > 1)
      p.arenas.forEach(([bytes, device], a) => {
        const y = this.ty - (this.base[a] + bytes / 2) * this.sy;
        if (y < this.top || y > this.height - this.bottom) return;
        ctx.fillText(`arena ${a}`, this.left - 6, y - 7);
        ctx.fillText(bytesText(bytes), this.left - 6, y + 7);
        ctx.fillStyle = deviceColour(device);
        ctx.fillRect(0, Math.max(this.top, this.ty - (this.base[a] + bytes) * this.sy), 4, bytes * this.sy - 1);
        ctx.fillStyle = colour("soft");
      });
    ctx.textAlign = "center";
    let every = 1;
    for (let k = 0; every * this.sx < 46; ++k) every = [1, 2, 5][k % 3] * 10 ** Math.floor(k / 3);
    const first = Math.max(0, Math.ceil((this.left - this.tx) / this.sx / every)) * every;
    for (let s = first; s < n; s += every) {
      const x = (s + 0.5) * this.sx + this.tx;
      if (x > this.width) break;
      ctx.fillText(String(s), x, this.height - this.bottom + 10);
    }
    // Who runs which steps, and where something crosses.
    for (let k = 0; k < p.devices.length; k += 2) {
      const from = p.devices[k] * this.sx + this.tx,
        to = (p.devices[k + 2] ?? n) * this.sx + this.tx;
      const x = Math.max(from, this.left),
        w = Math.min(to, this.width) - x;
      if (w <= 0) continue;
      ctx.fillStyle = deviceColour(p.devices[k + 1]);
      ctx.fillRect(x, 4, Math.max(1, w - 1), 14);
      ctx.fillStyle = colour("panel");
      if (w > 40)
        ctx.fillText(
          fitText(ctx, data.devices[p.devices[k + 1]] || `device ${p.devices[k + 1]}`, w - 8),
          x + w / 2,
          11.5,
        );
    }
    for (let s = Math.max(0, Math.floor((this.left - this.tx) / this.sx)); s < n && p.devices.length > 2; ++s) {
      const x = s * this.sx + this.tx;
      if (x > this.width) break;
      if (this.scope.rec(p.steps[s]).op !== "transfer" || x < this.left) continue;
      ctx.fillStyle = colour("removed");
      ctx.fillRect(x, 18, Math.max(2, this.sx - 1), 5);
    }
    ctx.fillStyle = colour("soft");
    ctx.textAlign = "right";
    ctx.fillText("runs on", this.left - 6, 11);
    ctx.fillText("step", this.left - 6, this.height - this.bottom + 10);
    ctx.textAlign = "left";
  }
  hit(px, py) {
    if (px < this.left || py < this.top || py > this.height - this.bottom) return null;
    let found = null;
    for (const b of this.boxes) {
      const [x, y, w, h] = this.place(b);
      if (px >= x && px <= x + w && py >= y && py <= y + h) found = b;
    }
    return found;
  }
  hover(px, py, e) {
    const b = this.hit(px, py);
    this.canvas.style.cursor = b ? "pointer" : "";
    tip(b ? memoryTab.describe(this.plan, this.scope, b) : null, e.clientX, e.clientY);
  }
  click(px, py) {
    this.picked = this.hit(px, py);
    if (this.picked) this.onpick(this.picked[0]);
    this.later();
  }
}
const deviceColour = (d) => colour(["accent", "fused", "dot", "leaf", "control", "other"][d % 6]);

const memoryTab = {
  now: 0,
  scopeOf(plan) {
    return plan.body < 0 ? stages[data.planned].scope : bodyScope(plan.body);
  },
  life(plan, first, last) {
    const n = plan.steps.length;
    const end = last >= n ? "the end" : `step ${Math.max(first, last, 0)}`;
    return `${first < 0 ? "before the run" : `step ${first}`} to ${end}`;
  },
  describe(plan, scope, b) {
    if (b[7] === 3)
      return `bodies of ${scope.title(b[0])}\n${bytesText(b[4])} at ${b[3]} of arena ${b[2]}, in step ${b[5]}`;
    const arena = plan.arenas.length > 1 ? ` of arena ${b[2]}` : "";
    const how = b[7] === 1 ? "\nwritten over " : b[7] === 2 ? "\na view of " : "";
    return (
      `${scope.title(b[0])}${b[1] ? ` #${b[1]}` : ""}\n` +
      `${scope.rec(b[0]).types[b[1]]}, ${bytesText(b[4])} at ${b[3]}${arena}\n` +
      this.life(plan, b[5], b[6]) +
      (how ? how + scope.title(b[8]) : "")
    );
  },
  init() {
    const root = byId("tab-memory");
    if (!data.plans.length) {
      root.replaceChildren(
        el(
          "p",
          { class: "empty" },
          "There is no memory plan: a symbol has no value. Bind all symbols, for example --bind seq=16.",
        ),
      );
      return;
    }
    this.render();
  },
  render() {
    const root = byId("tab-memory"),
      plan = data.plans[this.now],
      scope = this.scopeOf(plan);
    const arenaBytes = plan.arenas.reduce((s, a) => s + a[0], 0);
    const views = plan.buffers.filter((b) => b[7] === 2).length,
      over = plan.buffers.filter((b) => b[7] === 1).length;
    const card = (value, what) => el("div", { class: "card" }, el("b", {}, value), what);
    const choose =
      data.plans.length > 1
        ? el(
            "select",
            {
              id: "plan",
              "aria-label": "program",
              onchange: (e) => {
                this.now = +e.target.value;
                this.render();
                this.view?.fit();
              },
            },
            data.plans.map((p, k) => el("option", { value: k, selected: k === this.now }, p.name)),
          )
        : null;
    for (let i = canvases.length - 1; i >= 0; --i) if (canvases[i] instanceof MemoryView) canvases.splice(i, 1);
    this.view = null;
    const rows = [];
    for (const b of plan.buffers)
      rows.push([
        b[0],
        b[1],
        `arena${plan.arenas.length > 1 ? ` ${b[2]}` : ""} + ${b[3]}`,
        b[4],
        b[5],
        b[6],
        HOW[b[7]],
        b,
      ]);
    for (const e of plan.elsewhere) rows.push([e[0], e[1], text(e[2]), e[3], e[4], e[5], "", null]);
    const table = new Table(
      [
        {
          name: "value",
          width: "90px",
          mono: true,
          cell: (r) => `%${r[0]}${r[1] ? `#${r[1]}` : ""}`,
          sort: (r) => r[0],
        },
        { name: "op", width: "150px", cell: (r) => scope.rec(r[0]).op, sort: (r) => scope.rec(r[0]).op },
        { name: "place", width: "160px", mono: true, cell: (r) => r[2], sort: (r) => r[2] },
        { name: "bytes", width: "90px", num: true, cell: (r) => bytesText(r[3]), sort: (r) => r[3] },
        { name: "life", width: "200px", cell: (r) => this.life(plan, r[4], r[5]), sort: (r) => r[4] },
        { name: "how", width: "80px", cell: (r) => r[6], sort: (r) => r[6] },
        { name: "type", width: "200px", mono: true, cell: (r) => scope.rec(r[0]).types[r[1]] || "" },
        { name: "name or label", width: "240px", cell: (r) => leafName(scope.rec(r[0])) || scope.rec(r[0]).label },
      ],
      {
        label: "values and their memory",
        onpick: (r) => {
          this.view?.show(r[7] && r[7][7] !== 2 ? r[7] : null);
          this.pick(plan, scope, r[0]);
        },
      },
    );
    table.set(rows);
    const parts = plan.parts.length
      ? el(
          "div",
          { class: "frame" },
          el("h2", {}, "Partitions, in order"),
          plan.parts.map(([device, hostControlled, nodes], k) =>
            el(
              "p",
              { style: `margin:4px 0;border-left:4px solid ${deviceColour(device)};padding-left:8px` },
              `partition ${k}, ${hostControlled ? "host-controlled" : `on ${data.devices[device]}`}: `,
              `${nodes.length} nodes: `,
              nodes
                .slice(0, 30)
                .map((i) => [el("a", { onclick: () => this.pick(plan, scope, i) }, scope.title(i)), " "]),
              nodes.length > 30 ? "…" : "",
            ),
          ),
        )
      : null;
    if (plan.arenas.length && !plan.opaque) this.view = new MemoryView(plan, scope, (i) => this.pick(plan, scope, i));
    root.replaceChildren(
      ...[
        plan.opaque
          ? null
          : el(
              "div",
              { class: "cards" },
              card(bytesText(arenaBytes), plan.arenas.length > 1 ? `in ${plan.arenas.length} arenas` : "arena"),
              card(
                bytesText(plan.peak),
                `most live at once${plan.peak ? `, arena ${(arenaBytes / plan.peak).toFixed(3)}×` : ""}`,
              ),
              card(
                bytesText(Math.max(0, plan.unshared - arenaBytes)),
                `saved of ${bytesText(plan.unshared)} without reuse`,
              ),
              card(String(plan.steps.length), "steps"),
              card(`${over} / ${views}`, "in place / views"),
            ),
        choose ? el("p", { class: "note" }, "Plan of ", choose) : null,
        plan.opaque
          ? el("p", { class: "note" }, "This is an opaque device: it plans its memory itself.")
          : el(
              "p",
              { class: "note" },
              "Each rectangle is a buffer: its steps run to the right, its bytes upwards. A notch: the buffer is " +
                "written over a value that is no longer read. Line: live bytes. Red below the devices: a value is " +
                "copied to another device. Wheel: zoom the steps; drag: move.",
            ),
        parts,
        this.view ? el("div", { class: "picture" }, this.view.canvas) : null,
        rows.length ? table.el : null,
        plan.notes
          ? el(
              "details",
              { class: "frame", style: "max-height:30%" },
              el("summary", {}, "notes on the plan: copies, donations, bodies, waits"),
              el("pre", {}, plan.notes),
            )
          : null,
      ].filter(Boolean),
    );
  },
  pick(plan, scope, i) {
    if (plan.body < 0) details.node(scope, i, SAME, (k) => graphTab.showPlanned(k));
    else details.node(scope, i, SAME, (k) => this.pick(plan, scope, k));
  },
  // Of a node of the planned program: where its results lie.
  about(i) {
    const plan = data.plans[0];
    if (!plan) return [];
    const scope = this.scopeOf(plan),
      step = plan.steps.indexOf(i),
      lines = [];
    for (const b of plan.buffers)
      if (b[0] === i) lines.push(this.describe(plan, scope, b).split("\n").slice(1).join("; "));
    for (const e of plan.elsewhere) if (e[0] === i) lines.push(`${text(e[2])}, ${bytesText(e[3])}`);
    if (!lines.length && step < 0) return [];
    return [
      el("h3", {}, "Memory"),
      step >= 0 ? el("div", {}, `step ${step}`) : "",
      el(
        "ul",
        {},
        lines.map((l) => el("li", {}, l)),
      ),
    ];
  },
};
