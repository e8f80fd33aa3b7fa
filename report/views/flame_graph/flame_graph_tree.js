"use strict";

// By the number of a frame's kind: FrameOrigin of report/stacks/frames.h. `does` is what is counted.
const KINDS = [
  {id: "user", name: "User code", part: "CPU", does: "samples"},
  {id: "kernel", name: "Kernel code", part: "CPU", does: "samples"},
  {id: "api", name: "CUDA call", part: "CPU", does: "calls"},
  {id: "gpu", name: "GPU work", part: "GPU", does: "GPU operations"},
  {id: "pending", name: "Launch without GPU work", part: "calls", does: "launches"},
  {id: "other", name: "Other", part: "CPU", does: "samples"},
  {id: "python", name: "Python code", part: "CPU", does: "samples"},
];
const PENDING = 4, OTHER = 5, PYTHON = 6;
// In mode idle this kind holds the time in which a GPU had nothing to do.
function nameKinds(mode, isCompared) {
  if (isCompared) Object.assign(KINDS[PENDING], {name: "GPU idle", part: "GPU idle", does: "parts"});
  if (mode === "idle") Object.assign(KINDS[PENDING], {name: "GPU idle", does: "parts"});
}
const ROOT = 0;

// The first of `count` indexes for which `isAfter` is true; it must be true for all after it.
function firstOf(count, isAfter) {
  let low = 0, high = count;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (isAfter(middle)) high = middle; else low = middle + 1;
  }
  return low;
}

// The nodes in depth-first order, in columns, below a root that holds all. Times are ns: whole
// numbers, exact up to 2^53, which is 104 days.
class Tree {
  // `top`: the node that shares are of.
  constructor({depth, frame, ns, count, before}, {names, kinds, modules, sources}, top = ROOT) {
    this.size = depth.length + 1;
    this.names = names;
    this.kinds = kinds;
    this.modules = modules;
    this.sources = sources;
    this.top = top;
    this.depth = new Uint32Array(this.size);
    this.frame = new Int32Array(this.size).fill(-1);
    this.selfNs = new Float64Array(this.size);
    this.selfCount = new Float64Array(this.size);
    this.selfBefore = before ? new Float64Array(this.size) : null;
    for (let i = 1; i < this.size; ++i) {
      this.depth[i] = depth[i - 1] + 1;
      this.frame[i] = frame[i - 1];
      this.selfNs[i] = ns[i - 1];
      this.selfCount[i] = count[i - 1];
      if (before) this.selfBefore[i] = before[i - 1];
    }
    this.#link();
    this.#sortIntoRows();
    this.weigh(KINDS.map(() => true));
  }

  // parent: of each node; end: the first node behind those below it.
  #link() {
    this.parent = new Int32Array(this.size).fill(-1);
    this.end = new Uint32Array(this.size).fill(this.size);
    const path = [];  // the node that is open at each depth
    for (let i = 0; i < this.size; ++i) {
      while (path.length > this.depth[i]) this.end[path.pop()] = i;
      if (i > 0) this.parent[i] = path[path.length - 1];
      path.push(i);
    }
  }

  // rows[depth]: its nodes from left to right, which is in order of their numbers.
  #sortIntoRows() {
    const counts = [];
    for (const depth of this.depth) counts[depth] = (counts[depth] || 0) + 1;
    this.rows = counts.map(count => new Uint32Array(count));
    const filled = counts.map(() => 0);
    for (let i = 0; i < this.size; ++i) this.rows[this.depth[i]][filled[this.depth[i]]++] = i;
  }

  // Adds up the time of the kinds that are shown: total, and where each node starts.
  weigh(isShown) {
    const {size, parent} = this;
    this.isShown = isShown;
    this.total = new Float64Array(size);
    this.start = new Float64Array(size);
    for (let i = size - 1; i >= 0; --i) {
      if (isShown[this.kindOf(i)]) this.total[i] += this.selfNs[i];
      if (i > 0) this.total[parent[i]] += this.total[i];
    }
    if (this.selfBefore) this.#weighBefore();
    const used = new Float64Array(size);
    for (let i = 1; i < size; ++i) {
      this.start[i] = this.start[parent[i]] + used[parent[i]];
      used[parent[i]] += this.total[i];
    }
  }

  // What each node grew by, with those below it: what it has more than it is compared with.
  #weighBefore() {
    this.growth = new Float64Array(this.size);
    for (let i = this.size - 1; i >= 0; --i) {
      if (this.isShown[this.kindOf(i)]) this.growth[i] += this.selfNs[i] - this.selfBefore[i];
      if (i > 0) this.growth[this.parent[i]] += this.growth[i];
    }
  }

  kindOf(node) { return node === ROOT ? OTHER : this.kinds[this.frame[node]]; }
  nameOf(node) { return node === ROOT ? "all" : this.names[this.frame[node]]; }
  moduleOf(node) { return node === ROOT ? "" : this.modules[this.frame[node]]; }
  sourceOf(node) { return node === ROOT ? "" : this.sources[this.frame[node]]; }
  contains(outer, node) { return outer <= node && node < this.end[outer]; }

  // Outermost first, without the root.
  pathOf(node) {
    const path = [];
    for (; node !== ROOT; node = this.parent[node]) path.unshift(node);
    return path;
  }

  // The node that a path of frames leads to, or as far as there is one.
  find(path) {
    let node = ROOT;
    for (const frame of path) {
      let child = node + 1;
      while (child < this.end[node] && this.frame[child] !== frame) child = this.end[child];
      if (child >= this.end[node]) break;
      node = child;
    }
    return node;
  }

  // What each shown kind has in a node and below it.
  partsOf(node) {
    const parts = KINDS.map(() => ({ns: 0, count: 0}));
    for (let i = node; i < this.end[node]; ++i) {
      const kind = this.kindOf(i);
      if (!this.isShown[kind]) continue;
      parts[kind].ns += this.selfNs[i];
      parts[kind].count += this.selfCount[i];
    }
    return parts;
  }

  // The children that have time, from left to right.
  childrenOf(node) {
    const children = [];
    for (let i = node + 1; i < this.end[node]; i = this.end[i]) {
      if (this.total[i] > 0) children.push(i);
    }
    return children;
  }

  // The nodes of a row that are `node` or below it: from and to are indexes in the row.
  rangeInRow(depth, node) {
    const row = this.rows[depth] || [];
    return {
      row,
      from: firstOf(row.length, i => row[i] >= node),
      to: firstOf(row.length, i => row[i] >= this.end[node]),
    };
  }

  // The node of a row, `zoom` or below it, that is there at a time; -1: none.
  nodeAt(depth, zoom, ns) {
    const {row, from, to} = this.rangeInRow(depth, zoom);
    const at = this.firstEndingAfter(row, from, to, ns);
    return at < to && this.start[row[at]] <= ns ? row[at] : -1;
  }

  // The first index of the range in the row whose node ends behind a time; `to`: none does.
  firstEndingAfter(row, from, to, ns) {
    return from + firstOf(to - from, i => this.start[row[from + i]] + this.total[row[from + i]] > ns);
  }

  deepestIn(node) {
    let deepest = this.depth[node];
    for (let i = node; i < this.end[node]; ++i) {
      if (this.total[i] > 0 && this.depth[i] > deepest) deepest = this.depth[i];
    }
    return deepest;
  }
}
