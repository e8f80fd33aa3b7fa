"""The CPU side of tests/workloads/llm_decode.cu, which judges its kernels on a GPU, against the model
written again here; its weights pass through a file of the layout that --help tells."""

import array
import json
import math
import subprocess

from xpu_testing import PATIENCE_S, Workspace, expect, expect_in, main, workload

DIM, LAYERS, HEADS, KV_HEADS, VOCABULARY = 24, 2, 4, 2, 256
HEAD_DIM, KV_DIM, FFN_DIM = DIM // HEADS, DIM // HEADS * KV_HEADS, 4 * DIM
SHAPE = ["--dim", str(DIM), "--layers", str(LAYERS), "--heads", str(HEADS), "--kv-heads",
         str(KV_HEADS)]


def run(*arguments):
    return subprocess.run([workload("llm_decode"), *arguments], capture_output=True, text=True,
                          timeout=PATIENCE_S)


def tokens_of(result):
    expect("status", (result.returncode, result.stderr), (0, ""))
    [line] = [line for line in result.stdout.splitlines() if line.startswith("tokens:")]
    return [int(token) for token in line.split()[1:]]


def multiply(matrix, vector):
    return [sum(a * b for a, b in zip(row, vector)) for row in matrix]


def normalized(vector, weights):
    scale = 1 / math.sqrt(sum(a * a for a in vector) / len(vector) + 1e-5)
    return [a * scale * weight for a, weight in zip(vector, weights)]


def rotated(vector, position):
    result = []
    for i in range(0, len(vector), 2):
        angle = position * 10000 ** (-(i % HEAD_DIM) / HEAD_DIM)
        pair = complex(vector[i], vector[i + 1]) * complex(math.cos(angle), math.sin(angle))
        result += [pair.real, pair.imag]
    return result


class Model:
    def __init__(self, path):
        floats = array.array("f", path.read_bytes())
        used = 0

        def take(rows, columns):
            nonlocal used
            used += rows * columns
            return [floats[i:i + columns] for i in range(used - rows * columns, used, columns)]

        self.embedding = take(VOCABULARY, DIM)
        self.layers = [{"attention_norm": take(1, DIM)[0], "query": take(DIM, DIM),
                        "key": take(KV_DIM, DIM), "value": take(KV_DIM, DIM),
                        "output": take(DIM, DIM), "ffn_norm": take(1, DIM)[0],
                        "gate": take(FFN_DIM, DIM), "up": take(FFN_DIM, DIM),
                        "down": take(DIM, FFN_DIM), "keys": [], "values": []}
                       for _ in range(LAYERS)]
        self.final_norm, self.logits = take(1, DIM)[0], take(VOCABULARY, DIM)
        expect("floats in the file", len(floats), used)
        self.position = 0

    def forward(self, token):
        hidden = list(self.embedding[token])
        for layer in self.layers:
            attended = self.attention(layer, normalized(hidden, layer["attention_norm"]))
            hidden = [a + b for a, b in zip(hidden, attended)]
            fed = self.feed_forward(layer, normalized(hidden, layer["ffn_norm"]))
            hidden = [a + b for a, b in zip(hidden, fed)]
        self.position += 1
        return multiply(self.logits, normalized(hidden, self.final_norm))

    def attention(self, layer, vector):
        query = rotated(multiply(layer["query"], vector), self.position)
        layer["keys"].append(rotated(multiply(layer["key"], vector), self.position))
        layer["values"].append(multiply(layer["value"], vector))
        out = []
        for head in range(HEADS):
            own = query[head * HEAD_DIM:][:HEAD_DIM]
            shared = head // (HEADS // KV_HEADS) * HEAD_DIM
            weights = [math.exp(sum(a * b for a, b in zip(own, key[shared:])) /
                                math.sqrt(HEAD_DIM)) for key in layer["keys"]]
            out += [sum(w * value[shared + i] for w, value in zip(weights, layer["values"])) /
                    sum(weights) for i in range(HEAD_DIM)]
        return multiply(layer["output"], out)

    def feed_forward(self, layer, vector):
        gate, up = multiply(layer["gate"], vector), multiply(layer["up"], vector)
        return multiply(layer["down"], [g / (1 + math.exp(-g)) * u for g, u in zip(gate, up)])


def test_tokens_are_those_of_the_model_written_again():
    with Workspace() as work:
        path, prompt, steps = work.path / "weights", "Hello", 12
        arguments = ("--cpu", *SHAPE, "--prompt", prompt, "--steps", str(steps))
        tokens = tokens_of(run(*arguments, "--seed", "5", "--save-weights", str(path)))
        model, expected = Model(path), []
        for token in prompt.encode():
            logits = model.forward(token)
        for _ in range(steps + 1):
            expected.append(max(range(VOCABULARY), key=lambda i: logits[i]))
            logits = model.forward(expected[-1])
        expect("tokens", tokens, expected)
        expect("tokens with the weights of the file",
               tokens_of(run(*arguments, "--weights", str(path))), expected)


def test_draws_are_those_of_the_seed():
    drawn = ("--cpu", *SHAPE, "--temperature", "2", "--steps", "40")
    first = tokens_of(run(*drawn, "--seed", "1"))
    expect("the same seed", tokens_of(run(*drawn, "--seed", "1")), first)
    expect("another seed differs", tokens_of(run(*drawn, "--seed", "2")) != first, True)
    expect("the likeliest of one", tokens_of(run(*drawn, "--top-k", "1")),
           tokens_of(run("--cpu", *SHAPE, "--steps", "40")))


def test_counts_when_kernels_do_nothing():
    """The simulated device runs no kernel: the launches are counted all the same."""
    with Workspace() as work:
        path = work.path / "counts.json"
        tokens = tokens_of(run(*SHAPE, "--steps", "5", "--graph", "--counts", str(path)))
        counts = json.loads(path.read_text())
        expect("tokens", counts["tokens"], tokens)
        expect("steps", counts["graph_launches"], 5)
        per_layer, outside = 16, 3  # embedding; the last norm and the logits
        expect("kernels of a step", counts["kernels_per_graph"], per_layer * LAYERS + outside)
        expect("launches of the prefill",
               sum(n for paths in counts["launches"].values() for n in paths.values()),
               per_layer * LAYERS + outside)


def test_wrong_use_is_one_line():
    for arguments, message in ((["--dim", "250"], "--dim must be"),
                               (["--heads", "8", "--kv-heads", "3"], "multiple of --kv-heads"),
                               (["--weights", "/dev/null"], "not the 17310720 bytes"),
                               (["--layers", "0"], "--layers 0: not a number from 1"),
                               (["--sleeps", "3"], "--sleeps: unknown"),
                               (["--steps"], "--steps: unknown, or its value is missing")):
        result = run("--cpu", *arguments)
        expect("status", result.returncode, 2)
        expect("lines", result.stderr.count("\n"), 1)
        expect_in("message", message, result.stderr)


if __name__ == "__main__":
    main(globals())
