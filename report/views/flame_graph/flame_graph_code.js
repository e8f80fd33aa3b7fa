// The lines and instructions of kernels ("code" in the data), and the panel that shows those of one.
class KernelCode {
  constructor({kernels, files, stalls, leftOut, linesLeftOut, instructionsLeftOut, hasTexts}, sources) {
    Object.assign(this, {files, stalls, leftOut, linesLeftOut, instructionsLeftOut, hasTexts, sources});
    this.kernels = new Map();
    for (const kernel of kernels) {
      if (!this.kernels.has(kernel.name)) this.kernels.set(kernel.name, []);
      this.kernels.get(kernel.name).push(kernel);
    }
  }

  // {name, functions, place}: of the kernel that a frame is or lies in; place: "softmax.cu:42" if
  // the frame is a line, or what is waited for there. null: it is in none, or nothing is known of it.
  of(tree, node) {
    const path = tree.pathOf(node).map(each => tree.nameOf(each));
    const at = path.findIndex(frame => /^\[GPU\d*_Kernel\]/.test(frame));
    const name = at < 0 ? "" : path[at].replace(/^\[GPU\d*_Kernel\]/, "");
    const functions = this.kernels.get(name);
    if (!functions) return null;
    const place = path.slice(at + 1).reverse().find(frame => /:\d+$/.test(frame));
    return {name, functions, place: place || null};
  }

  // The lines of all functions, hottest file first: [{file, line, stalls: Map, samples}, ...].
  linesOf(functions) {
    const lines = new Map();
    const ofFile = new Map();
    for (const [file, line, stalls] of functions.flatMap(each => each.lines)) {
      const key = `${file}:${line}`;
      if (!lines.has(key)) lines.set(key, {file, line, stalls: new Map(), samples: 0});
      addStalls(lines.get(key), stalls);
      ofFile.set(file, (ofFile.get(file) || 0) + stalls.reduce((sum, n, i) => sum + (i % 2 ? n : 0), 0));
    }
    return [...lines.values()].sort((a, b) => a.file !== b.file
      ? ofFile.get(b.file) - ofFile.get(a.file) || a.file - b.file : a.line - b.line);
  }

  // Of instructions: [{offset, text, file, line, stalls, samples}, ...].
  instructionsOf({instructions}) {
    return instructions.map(([offset, text, file, line, stalls]) =>
      addStalls({offset, text, file, line, stalls: new Map(), samples: 0}, stalls));
  }

  placeOf(file, line) { return `${this.files[file].replace(/^.*\//, "")}:${line}`; }

  // What is missing, and what would help.
  notesOf(lines) {
    const notes = [];
    const files = [...new Set(lines.map(({file}) => file))];
    if (lines.length === 0) {
      notes.push("No source lines: compile with nvcc -lineinfo, or this is a library's code.");
    } else if (!files.some(file => this.sources.files.has(this.files[file]))) {
      notes.push("The text of the lines is not in the capture: xpu-record --gpu-samples --sources=hit stores it.");
    }
    if (!this.hasTexts) {
      notes.push("Instructions are offsets only: nvdisasm, a part of the CUDA Toolkit, was not found in PATH or CUDA_HOME.");
    }
    if (this.leftOut > 0) {
      notes.push(`${countText(this.leftOut, "functions")} with fewer samples are not in this page: xpu-report --annotate shows all.`);
    }
    if (this.linesLeftOut > 0) {
      notes.push(`${countText(this.linesLeftOut, "lines")} of large functions are not in this page.`);
    }
    if (this.instructionsLeftOut > 0) {
      notes.push(`${countText(this.instructionsLeftOut, "instructions")} of large functions are not in this page either.`);
    }
    return notes;
  }
}

// `pairs`: [stall, samples, stall, samples, ...]
function addStalls(sum, pairs) {
  for (let i = 0; i < pairs.length; i += 2) {
    sum.stalls.set(pairs[i], (sum.stalls.get(pairs[i]) || 0) + pairs[i + 1]);
    sum.samples += pairs[i + 1];
  }
  return sum;
}
function largestStalls({stalls}, most) {
  return [...stalls].sort((a, b) => b[1] - a[1]).slice(0, most);
}

const LINES_AROUND = 3;  // of those with samples
const MOST_STALLS = 6;   // that are explained
const LEAST_SHARE = 0.01;

class CodePanel {
  // `code`: null: the page has none. `left`: called when the panel is closed by a key.
  constructor(code, left) {
    this.code = code;
    this.left = left;
    this.name = "";  // of the kernel that is shown
    this.columns = ["code-lines", "code-instructions"].map(element);
    this.columns.forEach(column => column.addEventListener("click", event => {
      const row = event.target.closest("[role=option]");
      if (row) this.#select(row);
    }));
    element("code").addEventListener("keydown", event => this.#onKey(event));
    element("code-close").addEventListener("click", () => this.#close());
  }

  // What there is of a frame; true: something.
  show(tree, node) {
    const found = this.code && this.code.of(tree, node);
    element("code").hidden = !found;
    if (!found) return false;
    if (found.name !== this.name) this.#write(found);
    const named = found.place && this.rows.find(row => row.xpu.place === found.place);
    const lines = this.rows.filter(row => row.parentElement === this.columns[0]);
    const hottest = (lines.length > 0 ? lines : this.rows).reduce(
      (a, b) => a === null || b.xpu.samples > a.xpu.samples ? b : a, null);
    if (named || hottest) this.#select(named || hottest);
    return true;
  }

  // False: nothing is shown.
  focus() {
    if (element("code").hidden) return false;
    this.columns.find(column => column.childElementCount > 0)?.focus();
    return true;
  }

  // ---- what it shows

  #write({name, functions}) {
    const {code} = this;
    this.name = name;
    this.rows = [];
    this.whole = {stalls: new Map(), samples: 0};
    const instructions = functions.map(each => code.instructionsOf(each));
    for (const each of instructions.flat()) {
      addStalls(this.whole, [...each.stalls].flat());
    }
    this.whole.samples = functions.reduce((sum, each) => sum + each.samples, 0);
    const lines = code.linesOf(functions);
    const ns = functions.reduce((sum, each) => sum + each.ns, 0);
    element("code-name").textContent = name;
    element("code-facts").textContent = `${countText(this.whole.samples, "samples")} · ` +
      `${durationText(ns)} in ${countText(Math.max(...functions.map(each => each.count)), "kernels")}`;
    element("code-notes").replaceChildren(...code.notesOf(lines).map(note => make("li", note)));
    this.columns[0].replaceChildren(...this.#lineRows(lines));
    this.columns[1].replaceChildren(...functions.flatMap(
      (each, i) => this.#instructionRows(each, instructions[i], functions.length > 1)));
    this.columns[0].hidden = lines.length === 0;
  }

  // By file: its lines with samples, and around them what the capture has.
  #lineRows(lines) {
    const rows = [];
    let file = -1, shown = 0;
    for (const [i, each] of lines.entries()) {
      if (each.file !== file) {
        rows.push(make("div", this.code.files[each.file], "file"));
        shown = 0;
      }
      file = each.file;
      const next = lines[i + 1]?.file === file ? lines[i + 1].line : Infinity;
      const from = Math.max(shown + 1, each.line - LINES_AROUND, 1);
      const to = Math.min(next - 1, each.line + LINES_AROUND);
      const texts = this.code.sources.textsOf(this.code.files[file], from, to);
      if (shown > 0 && from > shown + 1 && texts.size > 0) rows.push(make("div", "⋯", "gap"));
      for (let line = from; line <= to; ++line) {
        if (line === each.line) {
          rows.push(this.#row(each, [String(line).padStart(5), texts.get(line) ?? ""],
                              this.code.placeOf(file, line)));
        } else if (texts.has(line)) {
          rows.push(this.#plainRow(String(line).padStart(5), texts.get(line)));
        }
      }
      shown = to;
    }
    return rows;
  }

  #instructionRows({callee, name}, instructions, isOneOfMany) {
    const rows = isOneOfMany ? [make("div", callee || name, "file")] : [];
    for (const each of instructions) {
      const offset = `0x${each.offset.toString(16).padStart(4, "0")}`;
      const place = each.file < 0 ? "" : this.code.placeOf(each.file, each.line);
      rows.push(each.samples > 0 ? this.#row(each, [offset, each.text || place], place)
        : this.#plainRow(offset, each.text));
    }
    return rows;
  }

  #row(each, [number, text], place) {
    const row = make("div");
    row.setAttribute("role", "option");
    row.xpu = {...each, place};
    const bar = make("i");
    const filled = make("s");
    const share = this.whole.samples === 0 ? 0 : each.samples / this.whole.samples;
    filled.style.width = `${(100 * share).toFixed(1)}%`;
    bar.append(filled);
    const stalls = largestStalls(each, 2).map(
      ([stall, samples]) => `${this.code.stalls[stall].name} ${Math.round(100 * samples / each.samples)}%`);
    row.append(bar, make("b", `${(100 * share).toFixed(1)} %`), make("u", number), make("span", text),
               make("em", stalls.join(", ")));
    this.rows.push(row);
    return row;
  }
  #plainRow(number, text) {
    const row = make("div", undefined, "plain");
    row.append(make("i"), make("b"), make("u", number), make("span", text), make("em"));
    return row;
  }

  // A line with its instructions, or an instruction with its line; and what is waited for there.
  #select(chosen) {
    this.selected = chosen;
    const {file, line} = chosen.xpu;
    for (const row of this.rows) {
      const isSame = file >= 0 && row.xpu.file === file && row.xpu.line === line;
      row.setAttribute("aria-selected", String(row === chosen));
      row.classList.toggle("same", isSame && row !== chosen);
    }
    for (const column of this.columns) {
      const first = column === chosen.parentElement ? chosen : column.querySelector(".same");
      if (first) scrollInto(column, first);
    }
    this.#writeStalls(chosen.xpu);
  }

  #writeStalls(at) {
    const {code, whole} = this;
    const place = at.place || `0x${at.offset.toString(16)}`;
    const entries = largestStalls(at, MOST_STALLS).filter(([, n]) => n >= LEAST_SHARE * at.samples);
    element("code-stalls").replaceChildren(
      make("h3", `Warps at ${place}: ${shareText(at.samples, whole.samples)} of the kernel's samples`),
      ...entries.flatMap(([stall, samples]) => {
        const {name, advice} = code.stalls[stall];
        return [make("dt", `${Math.round(100 * samples / at.samples)} % ${name}`), make("dd", advice)];
      }));
  }

  // ---- keyboard

  #onKey(event) {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const column = this.columns.indexOf(event.target);
    const step = {ArrowUp: -1, ArrowDown: 1}[event.key];
    if (event.key === "Escape") this.#close();
    else if (column >= 0 && step) this.#move(this.columns[column], step);
    else if (column >= 0 && event.key === "ArrowLeft") this.columns[0].focus();
    else if (column >= 0 && event.key === "ArrowRight") this.columns[1].focus();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  #move(column, step) {
    const rows = this.rows.filter(row => row.parentElement === column);
    const at = rows.indexOf(this.selected);
    const same = rows.findIndex(row => row.classList.contains("same"));
    const next = at >= 0 ? at + step : Math.max(0, same);
    if (rows[next]) this.#select(rows[next]);
  }

  #close() {
    element("code").hidden = true;
    this.left();
  }
}

// Without moving the page.
function scrollInto(column, row) {
  const top = row.offsetTop - column.offsetTop;
  if (top < column.scrollTop || top + row.offsetHeight > column.scrollTop + column.clientHeight) {
    column.scrollTop = top - column.clientHeight / 3;
  }
}
