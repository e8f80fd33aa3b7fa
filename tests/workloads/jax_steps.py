"""Steps of a small network in JAX, to attach to, for a machine with a GPU.

    jax_steps.py --times FILE

Prints "running" after the warm-up and repeats the step until the standard input ends; then FILE has
one line, the thread's id and the time at which each step began, of CLOCK_MONOTONIC.
"""

import argparse
import sys
import threading
import time

import jax
import jax.numpy as jnp


def loss(weights, batch):
    for weight in weights:
        batch = jnp.tanh(batch @ weight)
    return jnp.square(batch).mean()


@jax.jit
def update(weights, batch):
    gradients = jax.grad(loss)(weights, batch)
    return [weight - 0.01 * gradient for weight, gradient in zip(weights, gradients)]


def train_step(weights, batch):
    return jax.block_until_ready(update(weights, batch))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--times", required=True)
    options = parser.parse_args()
    keys = jax.random.split(jax.random.key(1), 5)
    weights = [jax.random.normal(key, (256, 256)) / 16 for key in keys[:4]]
    batch = jax.random.normal(keys[4], (64, 256))
    for _ in range(20):
        weights = train_step(weights, batch)
    ends = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), ends.set()), daemon=True).start()
    times = []
    print("running", flush=True)
    while not ends.is_set():
        times.append(time.monotonic_ns())
        weights = train_step(weights, batch)
    times.append(time.monotonic_ns())
    with open(options.times, "w", encoding="ascii") as file:
        print(threading.get_native_id(), *times, file=file)


if __name__ == "__main__":
    main()
