// The tree by slices ("choice" of the strip): what the nodes have in some of them alone.
class Slices {
  constructor({what, text, first, each, size, node, ns, count}) {
    Object.assign(this, {what, text, first, each, node, ns, count});
    this.size = size.length;
    this.begins = new Uint32Array(this.size + 1);
    size.forEach((cells, slice) => { this.begins[slice + 1] = this.begins[slice] + cells; });
  }

  // The columns of `nodes` with the time of the slices from `first` to `last`.
  nodesOf(nodes, [first, last]) {
    const ns = nodes.ns.map(() => 0);
    const count = nodes.ns.map(() => 0);
    for (let slice = first; slice <= last; ++slice) {
      let node = 0;
      for (let cell = this.begins[slice]; cell < this.begins[slice + 1]; ++cell) {
        node += this.node[cell];
        ns[node] += this.ns[cell];
        count[node] += this.count[cell];
      }
    }
    return {depth: nodes.depth, frame: nodes.frame, ns, count};
  }

  // Of the slices, the numbers that they have elsewhere: "37", "10-19".
  numbersText([first, last]) {
    const from = this.first + first * this.each;
    const to = this.first + (last + 1) * this.each - 1;
    return from === to ? `${from}` : `${from}-${to}`;
  }
  // null: it is no "37", "10-19", "100-" or "-5" of what is there.
  choiceOf(text) {
    const found = /^\s*(\d*)\s*(-?)\s*(\d*)\s*$/.exec(text);
    if (!found || !(found[1] || found[3]) || (!found[2] && found[3])) return null;
    const sliceOf = number => Math.floor((number - this.first) / this.each);
    const from = found[1] ? sliceOf(Number(found[1])) : 0;
    const to = !found[2] ? from : found[3] ? sliceOf(Number(found[3])) : this.size - 1;
    if (to < 0 || from >= this.size || from > to) return null;
    return [Math.max(0, from), Math.min(this.size - 1, to)];
  }
}

// The line above the strip, and the strip: who it belongs to gets `chosen(choice)`.
class StripPanel {
  constructor(data, {chosen, pointed}) {
    this.slices = data.choice && new Slices(data.choice);
    this.strip = new Strip(element("strip-picture"), data, {
      chosen: choice => { this.#write(choice); chosen(choice); },
      pointed,
    });
    element("strip").hidden = false;
    element("strip-choice").hidden = this.slices === null;
    if (this.slices === null) return;
    const {what, text, each} = this.slices;
    element("strip-what").textContent = `${what}s`;
    element("strip-how").textContent = each === 1 ? text : `${text}; a bar is ${each} ${what}s`;
    element("chosen").addEventListener("change", () => this.#onText(chosen));
    element("all").addEventListener("click", () => { this.set(null); chosen(null); });
    this.#write(null);
  }

  // Without telling it.
  set(choice) {
    this.strip.setChoice(choice);
    this.#write(this.strip.choice);
  }
  get text() {
    return this.strip.choice === null ? "" : this.slices.numbersText(this.strip.choice);
  }

  #onText(chosen) {
    const text = element("chosen").value;
    const choice = this.slices.choiceOf(text);
    if (choice === null && text.trim() !== "") {
      return element("chosen").setCustomValidity(`no such ${this.slices.what}: 37, 10-19, 100-`);
    }
    this.set(choice);
    chosen(choice);
  }

  #write(choice) {
    element("chosen").setCustomValidity("");
    element("chosen").value = choice === null ? "" : this.slices.numbersText(choice);
    element("all").hidden = choice === null;
  }

  nameOf(lane, bar) {
    if (lane.first === null) return lane.name;
    const {what, each} = this.slices;
    const slice = lane.sliceOf(bar);
    return `${what}${each > 1 ? "s" : ""} ${this.slices.numbersText([slice, slice])}`;
  }
  factsOf(lane, bar) {
    const facts = [[lane.unit === "ns" ? "Time" : "Value", lane.valueText(bar)],
                   ["Begins at", durationText(lane.starts[bar])]];
    if (lane.values[bar] !== lane.ends[bar] - lane.starts[bar]) {
      facts.push(["Lasts", durationText(lane.ends[bar] - lane.starts[bar])]);
    }
    return facts;
  }
}
