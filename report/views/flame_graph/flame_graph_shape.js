// What the page makes of the recorded tree: runs of frames of one family as one frame, or one
// function with all that it calls and all that calls it. Both are nodes in columns, as the data.

// The frames of the data, and those that stand for others behind them.
class Frames {
  constructor({frames, modules, families, sources}) {
    this.names = [...frames.name];
    this.kinds = [...frames.kind];
    this.modules = frames.module.map(index => index < 0 ? "" : modules[index]);
    // Where their source is: of Python the module, of native code the file of its line.
    const files = Object.keys(sources || {});
    this.sources = this.modules.map((module, i) => files[frames.file ? frames.file[i] : -1] || module);
    this.families = families;
    this.family = frames.family;
    this.added = new Map();  // by name and kind
  }

  add(name, kind) {
    const key = `${kind} ${name}`;
    if (!this.added.has(key)) {
      this.added.set(key, this.names.length);
      this.names.push(name);
      this.kinds.push(kind);
      this.modules.push("");
      this.sources.push("");
    }
    return this.added.get(key);
  }

  // In place of a frame; itself if it is of no family.
  collapsed(frame) {
    const family = this.family[frame];
    return family ? this.add(this.families[family], this.kinds[frame]) : frame;
  }
}

// A tree whose nodes with the same parent and frame are one.
class Shape {
  constructor(isCompared) {
    this.parent = [-1];
    this.frame = [-1];
    this.ns = [0];
    this.count = [0];
    this.before = isCompared ? [0] : null;
    this.known = new Map();
  }

  child(parent, frame) {
    const key = parent * 2 ** 26 + frame;
    const known = this.known.get(key);
    if (known !== undefined) return known;
    const node = this.parent.length;
    this.known.set(key, node);
    this.parent.push(parent);
    this.frame.push(frame);
    this.ns.push(0);
    this.count.push(0);
    if (this.before) this.before.push(0);
    return node;
  }

  add(node, ns, count, before) {
    this.ns[node] += ns;
    this.count[node] += count;
    if (this.before) this.before[node] += before;
  }

  // Depth first, of siblings the largest first.
  columns() {
    const size = this.parent.length;
    const total = Float64Array.from(this.ns);
    for (let i = size - 1; i > 0; --i) total[this.parent[i]] += total[i];
    const children = Array.from({length: size}, () => null);
    for (let i = 1; i < size; ++i) (children[this.parent[i]] ||= []).push(i);
    const columns = {depth: [], frame: [], ns: [], count: [], before: this.before && []};
    const waiting = [[ROOT, -1]];
    while (waiting.length > 0) {
      const [node, depth] = waiting.pop();
      if (node !== ROOT) {
        columns.depth.push(depth);
        for (const key of ["frame", "ns", "count", "before"]) columns[key]?.push(this[key][node]);
      }
      const inOrder = (children[node] || []).sort((a, b) => total[b] - total[a] || a - b);
      for (let i = inOrder.length - 1; i >= 0; --i) waiting.push([inOrder[i], depth + 1]);
    }
    return columns;
  }
}

function collapsed(nodes, frames) {
  const shape = new Shape(nodes.before !== undefined);
  const path = [ROOT];  // by depth + 1
  for (let i = 0; i < nodes.depth.length; ++i) {
    const outer = path[nodes.depth[i]];
    const frame = frames.collapsed(nodes.frame[i]);
    const goesOn = frame !== nodes.frame[i] && shape.frame[outer] === frame;
    const node = goesOn ? outer : shape.child(outer, frame);
    path[nodes.depth[i] + 1] = node;
    shape.add(node, nodes.ns[i], nodes.count[i], nodes.before?.[i]);
  }
  return shape.columns();
}

// On one side the function with what it calls, on the other what calls it, from the function
// outwards, each path ending with what its time is of. Where it calls itself the outermost call
// counts. `tree`: the whole one.
function sandwich(tree, function_, frames) {
  const shape = new Shape(tree.selfBefore !== null);
  const callees = shape.child(ROOT, function_);
  const callers = shape.child(ROOT, frames.add(`callers of ${frames.names[function_]}`, OTHER));
  for (let i = 1; i < tree.size; ++i) {
    if (tree.frame[i] !== function_) continue;
    addCallees(tree, i, shape, callees);
    addCallers(tree, i, shape, callers, frames);
    i = tree.end[i] - 1;
  }
  return shape.columns();
}

function addCallees(tree, outermost, shape, top) {
  const path = [top];  // by depth below `outermost`
  for (let i = outermost; i < tree.end[outermost]; ++i) {
    const depth = tree.depth[i] - tree.depth[outermost];
    if (i > outermost) path[depth] = shape.child(path[depth - 1], tree.frame[i]);
    shape.add(path[depth], tree.selfNs[i], tree.selfCount[i], tree.selfBefore?.[i]);
  }
}

function addCallers(tree, outermost, shape, top, frames) {
  let caller = top;
  for (let node = tree.parent[outermost]; node !== ROOT; node = tree.parent[node]) {
    caller = shape.child(caller, tree.frame[node]);
  }
  for (let i = outermost; i < tree.end[outermost]; ++i) {
    if (tree.selfNs[i] === 0 && !tree.selfBefore?.[i]) continue;
    const kind = tree.kindOf(i);
    const leaf = shape.child(caller, frames.add(`[${KINDS[kind].name}]`, kind));
    shape.add(leaf, tree.selfNs[i], tree.selfCount[i], tree.selfBefore?.[i]);
  }
}
