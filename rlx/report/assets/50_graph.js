// The picture of a graph.
const FILL = { [ADDED]: "added-fill", [CHANGED]: "changed-fill", [REMOVED]: "removed-fill" };
const EDGE_OF = { [ADDED]: "added", [CHANGED]: "changed", [REWIRED]: "changed", [REMOVED]: "removed" };

class GraphView extends Canvas {
  // statusOf(entity) says what the pass did to a node; onpick(position) is called for a click.
  constructor(scope, statusOf, onpick) {
    super(`graph of ${scope.size} nodes`, false);
    ((this.scope = scope),
      (this.statusOf = statusOf),
      (this.onpick = onpick),
      (this.picked = -1),
      (this.hits = new Set()));
    this.most = 4;
    this.plan = layoutOf(scope);
    this.map = el("canvas", { class: "map", "aria-hidden": "true" });
    this.map.addEventListener("pointerdown", (e) => {
      const p = this.plan,
        s = this.mapScale();
      this.center(p.low + e.offsetX / s[0], e.offsetY / s[1]);
    });
  }
  // Where a node is: its centre.
  at(i) {
    return [this.plan.x[i], this.plan.row[i] * ROW_H + ROW_H / 2];
  }
  fit() {
    const p = this.plan,
      w = p.high - p.low + 60,
      h = p.height + 30;
    this.sx = this.sy = Math.min(this.width / w, this.height / h, 1.2);
    this.tx = this.width / 2 - ((p.low + p.high) / 2) * this.sx;
    this.ty = this.height / 2 - (p.height / 2) * this.sy;
    this.later();
  }
  // All of it when that is readable; else the first change, or the top, in a size for reading.
  start() {
    this.fit();
    if (this.sx >= 0.45) return;
    this.sx = this.sy = 0.8;
    const changes = this.changes();
    const first =
      this.picked >= 0
        ? this.picked
        : changes.length
          ? changes[0]
          : this.plan.members[0]
            ? this.plan.members[0][0]
            : -1;
    if (first < 0) return;
    const [x, y] = this.at(first);
    this.center(x, Math.max(y, this.height / 2 / this.sy - 10));
  }
  center(x, y) {
    ((this.tx = this.width / 2 - x * this.sx), (this.ty = this.height / 2 - y * this.sy));
    this.later();
  }
  changes() {
    if (!this.changed) {
      this.changed = [];
      for (let i = 0; i < this.scope.size; ++i) if (this.statusOf(this.scope.order[i])) this.changed.push(i);
    }
    return this.changed;
  }
  show(i) {
    this.picked = i;
    if (i >= 0 && this.width) {
      const [x, y] = this.at(i),
        px = x * this.sx + this.tx,
        py = y * this.sy + this.ty;
      if (this.sx < 0.35) ((this.sx = this.sy = 0.8), this.center(x, y));
      else if (px < 100 || py < 40 || px > this.width - 100 || py > this.height - 40) this.center(x, y);
    }
    this.later();
  }
  hit(px, py) {
    const p = this.plan,
      x = (px - this.tx) / this.sx,
      y = (py - this.ty) / this.sy,
      r = Math.floor(y / ROW_H);
    if (r < 0 || r >= p.rows || Math.abs(y - r * ROW_H - ROW_H / 2) > NODE_H / 2) return -1;
    const list = p.members[r];
    let lo = 0,
      hi = list.length;
    while (lo < hi) {
      const mid = (lo + hi) >> 1;
      if (p.x[list[mid]] + NODE_W / 2 < x) lo = mid + 1;
      else hi = mid;
    }
    for (let k = Math.max(0, lo - 2); k < Math.min(list.length, lo + 3); ++k)
      if (list[k] < p.nodes && Math.abs(p.x[list[k]] - x) <= NODE_W / 2) return list[k];
    return -1;
  }
  hover(px, py, e) {
    const i = this.hit(px, py);
    this.canvas.style.cursor = i >= 0 ? "pointer" : "";
    if (i < 0) return tip(null);
    const rec = this.scope.rec(i);
    tip(
      `${this.scope.title(i)}\n${rec.types.join(", ")}${rec.attrs ? `\n${rec.attrs.slice(0, 200)}` : ""}`,
      e.clientX,
      e.clientY,
    );
  }
  click(px, py) {
    const i = this.hit(px, py);
    if (i >= 0) this.onpick(i);
  }
  draw() {
    if (!this.width) return;
    const ctx = this.begin(),
      p = this.plan,
      s = this.sx;
    const r0 = Math.max(0, Math.floor(-this.ty / s / ROW_H) - 1);
    const r1 = Math.min(p.rows - 1, Math.ceil((this.height - this.ty) / s / ROW_H) + 1);
    const x0 = -this.tx / s - NODE_W,
      x1 = (this.width - this.tx) / s + NODE_W;
    this.drawEdges(ctx, r0, r1, x0, x1);
    if (s < 0.2) this.drawSmall(ctx, r0, r1, x0, x1);
    else
      for (let r = r0; r <= r1; ++r)
        for (const i of this.inSight(p.members[r], x0, x1)) if (i < p.nodes) this.drawNode(ctx, i);
    this.drawMap();
  }
  // The part of a row between two places.
  inSight(list, x0, x1) {
    const x = this.plan.x,
      search = (v) => {
        let lo = 0,
          hi = list.length;
        while (lo < hi) {
          const mid = (lo + hi) >> 1;
          if (x[list[mid]] < v) lo = mid + 1;
          else hi = mid;
        }
        return lo;
      };
    return list.slice(search(x0), search(x1));
  }
  drawEdges(ctx, r0, r1, x0, x1) {
    const p = this.plan,
      s = this.sx,
      chosen = [];
    const source = (k) => {
      while (k >= p.nodes) k = p.above[k][0];
      return k;
    };
    ctx.strokeStyle = colour("edge");
    ctx.lineWidth = Math.max(0.6, Math.min(1.4, s * 1.3));
    ctx.globalAlpha = s < 0.2 ? 0.45 : 0.85;
    ctx.beginPath();
    const line = (k, i) => {
      const ax = p.x[k] * s + this.tx,
        bx = p.x[i] * s + this.tx;
      const ay = (p.row[k] * ROW_H + ROW_H / 2 + (k < p.nodes ? NODE_H / 2 : 0)) * s + this.ty;
      const by = (p.row[i] * ROW_H + ROW_H / 2 - (i < p.nodes ? NODE_H / 2 : 0)) * s + this.ty;
      ctx.moveTo(ax, ay);
      if (s < 0.2 || ax === bx) ctx.lineTo(bx, by);
      else ctx.bezierCurveTo(ax, (ay + by) / 2, bx, (ay + by) / 2, bx, by);
    };
    for (let r = r0; r <= Math.min(r1 + 1, p.rows - 1); ++r)
      for (const i of p.members[r])
        for (const k of p.above[i]) {
          if ((p.x[i] < x0 && p.x[k] < x0) || (p.x[i] > x1 && p.x[k] > x1)) continue;
          if (this.picked >= 0 && (i === this.picked || source(k) === this.picked)) chosen.push([k, i]);
          line(k, i);
        }
    ctx.stroke();
    ctx.globalAlpha = 1;
    if (!chosen.length) return;
    ctx.strokeStyle = colour("accent");
    ctx.lineWidth = Math.max(1.2, 2 * s);
    ctx.beginPath();
    for (const [k, i] of chosen) line(k, i);
    ctx.stroke();
  }
  drawSmall(ctx, r0, r1, x0, x1) {
    const p = this.plan,
      s = this.sx,
      w = Math.max(1.5, NODE_W * s),
      h = Math.max(1.5, NODE_H * s),
      groups = new Map();
    for (let r = r0; r <= r1; ++r)
      for (const i of this.inSight(p.members[r], x0, x1)) {
        if (i >= p.nodes) continue;
        const status = this.statusOf(this.scope.order[i]);
        const name =
          i === this.picked
            ? "accent"
            : this.hits.has(i)
              ? "hit"
              : status
                ? EDGE_OF[status]
                : family(this.scope.rec(i).op);
        if (!groups.has(name)) groups.set(name, []);
        groups.get(name).push(i);
      }
    for (const [name, list] of groups) {
      const marked = name === "accent" || name === "hit";
      ctx.fillStyle = colour(name);
      for (const i of list) {
        const [x, y] = this.at(i),
          bw = marked ? Math.max(w, 6) : w,
          bh = marked ? Math.max(h, 6) : h;
        ctx.fillRect(x * s + this.tx - bw / 2, y * s + this.ty - bh / 2, bw, bh);
      }
    }
  }
  drawNode(ctx, i) {
    const s = this.sx,
      [cx, cy] = this.at(i),
      w = NODE_W * s,
      h = NODE_H * s;
    const x = cx * s + this.tx - w / 2,
      y = cy * s + this.ty - h / 2;
    const rec = this.scope.rec(i),
      status = this.statusOf(this.scope.order[i]),
      kind = family(rec.op),
      leaf = LEAVES.has(rec.op);
    const radius = leaf ? h / 2 : 6 * s;
    const box = (grow) => {
      ctx.beginPath();
      ctx.roundRect(x - grow, y - grow, w + 2 * grow, h + 2 * grow, radius + grow);
    };
    if (this.hits.has(i)) {
      box(4);
      ctx.fillStyle = colour("hit");
      ctx.fill();
    }
    box(0);
    ctx.fillStyle = colour(FILL[status] || "node");
    ctx.fill();
    ctx.save();
    ctx.clip();
    ctx.fillStyle = colour(kind);
    ctx.fillRect(x, y, (leaf ? 14 : 5) * s, h);
    ctx.restore();
    box(0);
    ctx.strokeStyle = colour(i === this.picked ? "accent" : EDGE_OF[status] || "node-line");
    ctx.lineWidth = i === this.picked ? 2.5 : status ? 1.6 : 1;
    if (status === REWIRED) ctx.setLineDash([5, 3]);
    ctx.stroke();
    ctx.setLineDash([]);
    const roots = this.scope.rootsOf.get(this.scope.order[i]);
    const far = this.plan.far[i];
    if (s >= 0.3) {
      const pad = (leaf ? 20 : 12) * s,
        name = leafName(rec);
      ctx.textBaseline = "middle";
      ctx.font = `600 ${12.5 * s}px system-ui, sans-serif`;
      ctx.fillStyle = colour("text");
      const id = `%${i}`;
      ctx.fillText(
        (name ? fitEnd : fitText)(ctx, name || rec.op, w - pad - (id.length * 7 + (leaf ? 22 : 12)) * s),
        x + pad,
        y + h * 0.32,
      );
      ctx.font = `${10.5 * s}px system-ui, sans-serif`;
      ctx.fillStyle = colour("soft");
      ctx.textAlign = "right";
      ctx.fillText(id, x + w - (leaf ? 14 : 7) * s, y + h * 0.32);
      ctx.textAlign = "left";
      ctx.fillText(
        fitText(ctx, (name ? rec.op + "  " : "") + rec.types.join(", "), w - pad - 8 * s),
        x + pad,
        y + h * 0.72,
      );
      if (rec.bodies.length) {
        ctx.fillStyle = colour("control");
        ctx.fillRect(x + w - 9 * s, y + h - 9 * s, 5 * s, 5 * s);
      }
      ctx.font = `${9.5 * s}px system-ui, sans-serif`;
      ctx.textAlign = "center";
      const above = (words, y, name) => {
        // over the edges that pass there
        const line = fitText(ctx, words, w),
          wide = ctx.measureText(line).width;
        ctx.fillStyle = colour("canvas");
        ctx.fillRect(cx * s + this.tx - wide / 2 - 2, y - 6 * s, wide + 4, 12 * s);
        ctx.fillStyle = colour(name);
        ctx.fillText(line, cx * s + this.tx, y);
      };
      if (far.length) {
        const names =
          far
            .slice(0, 3)
            .map((k) => this.scope.title(k))
            .join(", ") + (far.length > 3 ? ` +${far.length - 3}` : "");
        above(`↳ ${names}`, y - 9 * s, "soft");
      }
      if (roots) above(`${roots.join(", ")} ↓`, y + h + 10 * s, "accent");
      ctx.textAlign = "left";
    }
  }
  mapScale() {
    const p = this.plan;
    return [110 / (p.high - p.low), 150 / p.height];
  }
  drawMap() {
    const p = this.plan,
      [sx, sy] = this.mapScale(),
      ratio = window.devicePixelRatio || 1;
    const whole = this.sx * (p.high - p.low) < this.width && this.sy * p.height < this.height;
    this.map.style.display = whole ? "none" : "";
    if (whole) return;
    if (!this.overview) {
      this.overview = document.createElement("canvas");
      ((this.overview.width = 110 * ratio), (this.overview.height = 150 * ratio));
      const o = this.overview.getContext("2d");
      o.scale(ratio, ratio);
      for (const changed of [false, true])
        for (let i = 0; i < p.nodes; ++i) {
          const status = this.statusOf(this.scope.order[i]);
          if (!!status !== changed) continue;
          o.fillStyle = colour(status ? EDGE_OF[status] : "node-line");
          o.fillRect(
            (p.x[i] - p.low) * sx - 1,
            (p.row[i] + 0.5) * ROW_H * sy - 1,
            Math.max(2, NODE_W * sx),
            Math.max(1.2, NODE_H * sy),
          );
        }
    }
    ((this.map.width = 110 * ratio), (this.map.height = 150 * ratio));
    const c = this.map.getContext("2d");
    c.drawImage(this.overview, 0, 0);
    c.scale(ratio, ratio);
    c.strokeStyle = colour("accent");
    c.lineWidth = 1.5;
    const clamp = (v, hi) => Math.max(1, Math.min(hi - 1, v));
    const ax = clamp((-this.tx / this.sx - p.low) * sx, 110),
      bx = clamp(((this.width - this.tx) / this.sx - p.low) * sx, 110);
    const ay = clamp((-this.ty / this.sy) * sy, 150),
      by = clamp(((this.height - this.ty) / this.sy) * sy, 150);
    c.strokeRect(ax, ay, Math.max(3, bx - ax), Math.max(3, by - ay));
  }
}
