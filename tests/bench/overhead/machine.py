"""What a table was measured on, for the lines above it."""

import datetime
import os
import pathlib
import platform
import shutil
import subprocess


def output_of(*command):
    """Empty where the program is not there or fails."""
    if shutil.which(command[0]) is None:
        return ""
    try:
        result = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    except subprocess.TimeoutExpired:
        return ""
    return result.stdout.strip() if result.returncode == 0 else ""


def processor():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def cuda_version(cuda):
    for line in output_of(str(cuda / "bin/nvcc"), "--version").splitlines():
        if "release" in line:
            return line.split("release", 1)[1].split(",")[0].strip()
    return "no nvcc"


def python_versions(python):
    return output_of(python, "-c", "import platform; versions = ['Python ' + "
                     "platform.python_version()]\nfor name in ('torch', 'triton'):\n"
                     "  try: versions.append(name + ' ' + __import__(name).__version__)\n"
                     "  except ImportError: pass\nprint(', '.join(versions))")


def gpus():
    listed = output_of("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader")
    if listed:
        return "; ".join(line.replace(",", ", driver") for line in listed.splitlines())
    # Not everywhere is the driver's tool.
    driver = pathlib.Path("/proc/driver/nvidia")
    models = [line.split(":", 1)[1].strip()
              for information in sorted(driver.glob("gpus/*/information"))
              for line in information.read_text().splitlines() if line.startswith("Model")]
    version = driver / "version"
    told = version.read_text().splitlines()[0] if version.exists() else "no driver"
    return f"{'; '.join(models) or 'unknown'}, {told}"


def lines(command, recorder, python, cuda, simulated):
    gpu = ("none: the simulated device, whose times say nothing about a real one" if simulated
           else gpus())
    facts = {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "GPU": gpu,
        "CUDA": cuda_version(cuda),
        "processor": f"{processor()}, {os.cpu_count()} CPUs",
        "kernel": platform.release(),
        "Python": python_versions(python),
        "xpu-record": output_of(str(recorder), "--version"),
        "nsys": output_of("nsys", "--version") or "not installed",
        "command": f"`{command}`",
    }
    return [f"- {name}: {fact}" for name, fact in facts.items()]
