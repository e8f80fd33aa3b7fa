// What the capture has of source files: lines by file, some of each.
class Sources {
  // `files`: {path: [[first line, text], ...]}.
  constructor(files) {
    this.files = new Map(Object.entries(files || {}).map(([path, runs]) =>
      [path, runs.map(([first, text]) => ({first, lines: text.replace(/\n$/, "").split("\n")}))]));
  }

  // {path, first, lines, at}: `at` is the line of the frame, if it has one, with some lines around it.
  // null: there is nothing of it.
  of(name, path) {
    const runs = this.files.get(path);
    if (!runs) return this.#ofKernel(name);
    const line = Number((/:(\d+)(?: |$)/.exec(name) || [])[1]);
    if (line) return this.#around(path, runs, line);
    const plain = name.replace(/^.*[:.]/, "").replace(/[^\w]/g, "");
    return plain === "" ? null : this.#lineOf(path, runs, new RegExp(`^\\s*(async\\s+)?def\\s+${plain}\\b`), 0, 24);
  }

  // Those of the lines from `from` to `to` that there are, by number.
  textsOf(path, from, to) {
    const texts = new Map();
    for (const {first, lines} of this.files.get(path) || []) {
      for (let line = Math.max(from, first); line <= to && line < first + lines.length; ++line) {
        texts.set(line, lines[line - first]);
      }
    }
    return texts;
  }

  // Of a kernel that a compiler has written the comment above it, which says of what it is made.
  #ofKernel(name) {
    const [, kernel] = /^\[GPU\d*_Kernel\](triton_\w+)/.exec(name) || [];
    if (!kernel) return null;
    for (const [path, runs] of this.files) {
      const found = this.#lineOf(path, runs, new RegExp(`^${kernel} = async_compile`), 20, 1);
      if (found) return found;
    }
    return null;
  }

  #around(path, runs, line) {
    const run = runs.find(({first, lines}) => line >= first && line < first + lines.length);
    return run ? this.#cut(path, run, line - run.first, 6, 7) : null;
  }

  #lineOf(path, runs, pattern, before, after) {
    for (const run of runs) {
      const index = run.lines.findIndex(text => pattern.test(text));
      if (index >= 0) return this.#cut(path, run, index, before, after);
    }
    return null;
  }

  #cut(path, {first, lines}, index, before, after) {
    const begin = Math.max(0, index - before);
    return {path, first: first + begin, lines: lines.slice(begin, index + after), at: first + index};
  }
}

// "  12 > line": as it is, whatever the file holds.
function writeSource(place, source) {
  place.hidden = !source;
  if (!source) return place.replaceChildren();
  const width = String(source.first + source.lines.length).length;
  place.replaceChildren(make("b", source.path), ...source.lines.map((text, i) => {
    const number = source.first + i;
    const isAt = number === source.at;
    const line = `${String(number).padStart(width)} ${isAt ? ">" : " "} ${text}`;
    return make("span", line, isAt ? "at" : undefined);
  }));
}

