// The strip above the picture: lanes of bars over one axis of time; "strip" in the data. It knows
// nothing of the tree: who owns it learns which slices are chosen.

const LANE = 30;      // pixels, with the gap below
const LOW_LANE = 17;  // of values that are not times: there are many
const HEAT_LANE = 13; // so that lanes together are a map
const LANE_GAP = 4;
const NAMES = 190;    // their names, left of the bars

class Lane {
  constructor({name, unit, heat, top, first, gap, length, value}) {
    this.name = name;
    this.unit = unit;
    this.first = first;  // null: its bars cannot be chosen
    this.isHeat = heat === true;  // values are colors
    this.isLow = unit !== "ns" || this.isHeat;
    this.height = this.isHeat ? HEAT_LANE : this.isLow ? LOW_LANE : LANE;
    this.size = gap.length;
    this.starts = new Float64Array(this.size);
    this.ends = new Float64Array(this.size);
    let at = 0;
    for (let i = 0; i < this.size; ++i) {
      this.starts[i] = at + gap[i];
      this.ends[i] = at = this.starts[i] + length[i];
    }
    this.values = Float64Array.from(value || length);
    this.top = top || this.values.reduce((a, b) => Math.max(a, b), 0) || 1;
  }

  sliceOf(bar) { return this.first + bar; }
  valueText(bar) {
    const value = this.values[bar];
    return this.unit === "ns" ? durationText(value)
      : `${value.toLocaleString("en", {maximumSignificantDigits: 4})} ${this.unit}`;
  }
  // The largest bar that is there between two times; -1: none.
  largestIn(fromNs, toNs) {
    let largest = -1;
    for (let i = firstOf(this.size, bar => this.ends[bar] > fromNs);
         i < this.size && this.starts[i] < toNs; ++i) {
      if (largest < 0 || this.values[i] > this.values[largest]) largest = i;
    }
    return largest;
  }
}

class Strip {
  // `chosen`: called with the first and the last slice, or null for all. `pointed`: with a lane and
  // a bar, and an event; or nothing.
  constructor(canvas, {fromNs, toNs, lanes}, {chosen, pointed}) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d", {alpha: false});
    this.fromNs = fromNs;
    this.toNs = Math.max(toNs, fromNs + 1);
    this.lanes = lanes.map(lane => new Lane(lane));
    this.height = 0;
    for (const lane of this.lanes) {
      lane.y = this.height;
      this.height += lane.height;
    }
    this.left = this.lanes.some(lane => lane.isLow) ? NAMES : 0;
    const choosable = this.lanes.filter(({first}) => first !== null);
    this.firstSlice = Math.min(...choosable.map(({first}) => first));
    this.lastSlice = Math.max(...choosable.map(({first, size}) => first + size - 1));
    this.choice = null;  // [first, last]
    this.anchor = null;  // the slice where a choice began
    this.theme = THEMES.light;
    this.width = 0;
    this.tellChosen = chosen;
    this.tellPointed = pointed;
    this.#listen();
  }

  resize() {
    const ratio = window.devicePixelRatio || 1;
    this.width = this.canvas.parentElement.clientWidth;
    this.canvas.style.width = `${this.width}px`;
    this.canvas.style.height = `${this.height}px`;
    this.canvas.width = Math.max(1, Math.round(this.width * ratio));
    this.canvas.height = Math.max(1, Math.round(this.height * ratio));
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.draw();
  }

  setTheme(name) {
    this.theme = THEMES[name];
    this.draw();
  }

  // ---- the choice

  // Without telling it.
  setChoice(choice) {
    this.choice = choice && choice[0] <= this.lastSlice && choice[1] >= this.firstSlice
      ? choice.map(slice => Math.min(this.lastSlice, Math.max(this.firstSlice, slice))) : null;
    this.draw();
  }
  #choose(choice) {
    this.setChoice(choice);
    this.tellChosen(this.choice);
  }
  #isChosen(slice) {
    return this.choice !== null && this.choice[0] <= slice && slice <= this.choice[1];
  }
  #span(slice) {
    const {anchor} = this;
    return anchor === null || slice === null ? this.choice
      : [Math.min(anchor, slice), Math.max(anchor, slice)];
  }

  // ---- places

  get #nsPerPixel() { return (this.toNs - this.fromNs) / Math.max(1, this.width - this.left); }
  #xOf(ns) { return this.left + (ns - this.fromNs) / this.#nsPerPixel; }
  #nsOf(x) { return this.fromNs + (x - this.left) * this.#nsPerPixel; }
  #barAt(lane, x) { return lane.largestIn(this.#nsOf(Math.floor(x)), this.#nsOf(Math.floor(x) + 1)); }
  // The lane and bar at a place; bar -1: none. Of bars narrower than a pixel the largest.
  at(x, y) {
    const lane = this.lanes.find(each => y < each.y + each.height) || this.lanes[this.lanes.length - 1];
    return {lane, bar: x < this.left ? -1 : this.#barAt(lane, x)};
  }
  boxOf(lane, bar) {
    const left = this.#xOf(lane.starts[bar]);
    const gap = lane.isHeat ? 1 : LANE_GAP;
    const share = lane.isHeat ? 1 : Math.min(1, lane.values[bar] / lane.top);
    const height = Math.max(1, (lane.height - gap) * share);
    return {
      x: left, y: lane.y + lane.height - gap - height,
      width: Math.max(1, this.#xOf(lane.ends[bar]) - left), height,
    };
  }
  // Where the bars of a lane cannot be chosen, what can be at that time.
  #sliceAt(x, y) {
    if (x < this.left) return null;
    const lane = [this.at(x, y).lane, ...this.lanes].find(({first}) => first !== null);
    const bar = lane ? this.#barAt(lane, x) : -1;
    return bar < 0 ? null : lane.sliceOf(bar);
  }
  // The time of what is chosen; null: nothing is.
  #chosenSpan() {
    if (this.choice === null) return null;
    const [first, last] = this.choice;
    const span = [Infinity, -Infinity];
    for (const lane of this.lanes) {
      if (lane.first === null) continue;
      const from = Math.max(0, first - lane.first), to = Math.min(lane.size - 1, last - lane.first);
      if (from > to) continue;
      span[0] = Math.min(span[0], lane.starts[from]);
      span[1] = Math.max(span[1], lane.ends[to]);
    }
    return span;
  }

  // ---- drawing

  draw() {
    if (this.width === 0) return;
    const {context, theme} = this;
    context.fillStyle = theme.page;
    context.fillRect(0, 0, this.width, this.height);
    const span = this.#chosenSpan();
    for (const lane of this.lanes) {
      this.#drawLane(lane, span);
      if (this.left > 0) this.#drawName(lane);
    }
  }

  // Of the bars that begin in one pixel the largest is drawn; chosen ones over the others.
  #drawLane(lane, span) {
    const isOfChoice = bar => lane.first !== null ? this.#isChosen(lane.sliceOf(bar))
      : span !== null && lane.starts[bar] < span[1] && lane.ends[bar] > span[0];
    for (const isChosen of [false, true]) {
      this.context.fillStyle = this.#colorOf(lane, isChosen);
      for (let i = 0; i < lane.size;) {
        const pixel = Math.floor(this.#xOf(lane.starts[i]));
        let largest = -1;
        for (; i < lane.size && Math.floor(this.#xOf(lane.starts[i])) === pixel; ++i) {
          if (isChosen === isOfChoice(i) && (largest < 0 || lane.values[i] > lane.values[largest])) largest = i;
        }
        if (largest < 0) continue;
        const {x, y, width, height} = this.boxOf(lane, largest);
        this.context.globalAlpha = lane.isHeat ? 0.08 + 0.92 * lane.values[largest] / lane.top : 1;
        if (lane.isLow) {  // without seams between them
          this.context.fillRect(Math.floor(x), y, Math.ceil(x + width) - Math.floor(x), height);
        } else {
          this.context.fillRect(x, y, width > 4 ? width - 1 : width, height);
        }
      }
    }
    this.context.globalAlpha = 1;
  }

  // With what a full bar is.
  #drawName(lane) {
    const {context, theme} = this;
    const unit = lane.isLow && !lane.isHeat ? `${Math.round(lane.top).toLocaleString("en")} ${lane.unit}` : "";
    const y = lane.y + (lane.height - LANE_GAP) / 2;
    context.font = FONT;
    context.textBaseline = "middle";
    context.fillStyle = theme.text;
    const room = this.left - 12 - (unit ? context.measureText(unit).width : 0);
    context.textAlign = "left";
    context.fillText(shortened(context, lane.name, room), 0, y);
    context.textAlign = "right";
    context.fillText(unit, this.left - 6, y);
    context.textAlign = "left";
  }

  #colorOf(lane, isChosen) {
    const {kinds, found, dust} = this.theme;
    if (isChosen && !lane.isHeat) return found;
    if (this.choice !== null && !isChosen) return dust;
    const kind = lane.isHeat || / throttled/.test(lane.name) ? "pending" : lane.isLow ? "gpu" : "api";
    const [hue, saturation, lightness] = kinds[kind];
    return `hsl(${hue} ${saturation}% ${lightness}%)`;
  }

  // ---- mouse and keyboard

  #listen() {
    const {canvas} = this;
    canvas.addEventListener("pointerdown", event => this.#onPress(event));
    canvas.addEventListener("pointermove", event => this.#onMove(event));
    canvas.addEventListener("pointerup", () => this.#onRelease());
    canvas.addEventListener("pointercancel", () => { this.isPressed = false; });
    canvas.addEventListener("pointerleave", () => this.tellPointed());
    canvas.addEventListener("keydown", event => this.#onKey(event));
  }

  #onPress(event) {
    if (event.button !== 0) return;
    const slice = this.#sliceAt(event.offsetX, event.offsetY);
    if (slice === null) return;
    this.isPressed = true;
    this.canvas.setPointerCapture(event.pointerId);
    this.before = this.choice;
    if (!event.shiftKey || this.choice === null) this.anchor = slice;
    this.setChoice(this.#span(slice));
  }

  #onMove(event) {
    const {lane, bar} = this.at(event.offsetX, event.offsetY);
    if (bar < 0) this.tellPointed(); else this.tellPointed(lane, bar, event);
    if (!this.isPressed) return;
    this.setChoice(this.#span(this.#sliceAt(event.offsetX, event.offsetY)));
  }

  // A click on what is chosen alone is for all again.
  #onRelease() {
    if (!this.isPressed) return;
    this.isPressed = false;
    const [first, last] = this.choice;
    const isSame = this.before !== null && first === last && this.before.every(n => n === first);
    this.#choose(isSame ? null : this.choice);
  }

  // Arrow keys choose the next bar, with Shift one more.
  #onKey(event) {
    const step = {ArrowLeft: -1, ArrowRight: 1}[event.key];
    if (!step || this.lastSlice < this.firstSlice || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    event.stopPropagation();
    if (this.choice === null) {
      this.anchor = step > 0 ? this.firstSlice : this.lastSlice;
      return this.#choose([this.anchor, this.anchor]);
    }
    const [first, last] = this.choice;
    const moved = (this.anchor === last ? first : last) + step;
    const slice = Math.min(this.lastSlice, Math.max(this.firstSlice, moved));
    if (!event.shiftKey || this.anchor === null) this.anchor = event.shiftKey ? first : slice;
    this.#choose(this.#span(slice));
  }
}

// As much of a text as there is room for.
function shortened(context, text, room) {
  if (context.measureText(text).width <= room) return text;
  const length = firstOf(text.length, n => context.measureText(`${text.slice(0, n)}…`).width > room);
  return `${text.slice(0, Math.max(0, length - 1))}…`;
}
