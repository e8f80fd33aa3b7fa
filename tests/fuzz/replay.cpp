// fuzz_TARGET_replay [OPTIONS] PATH...: a fuzz target on the inputs of files and directories, then
// on changes of them, the same ones for the same seed: what CI runs of the fuzzers.
//
//   --mutations N      so many changes
//   --seed N           others
//   --sections PREFIX  only of what is in the sections of ELF files that are called so (".debug_"),
//                      and no sizes, so that more of them are reached; of files of any size
//   --save FILE        writes each input before it is run: at last the one that failed
//   --slowest FILE     writes the input that took the most CPU time, which is printed
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <elf.h>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

namespace fs = std::filesystem;
using Input = std::vector<uint8_t>;

constexpr size_t kMaxBytes = size_t{256} << 10;
constexpr uint64_t kInteresting[] = {
    0,          1,          7,          8,         0x7f,       0x80,      0xff,
    0x100,      0xffff,     0x10000,    1u << 24,  0x7fffffff, 1u << 31,  0xffffffff,
    1ull << 32, 1ull << 40, 1ull << 63, ~0ull - 7, ~0ull - 1,  ~0ull / 8, ~0ull};

struct Range {
  size_t begin = 0;
  size_t size = 0;
};

// The sections whose names begin with `prefix`, of a file that is not damaged.
std::vector<Range> SectionsOf(const Input& file, std::string_view prefix) {
  std::vector<Range> ranges;
  Elf64_Ehdr header{};
  if (file.size() < sizeof(header)) return ranges;
  std::memcpy(&header, file.data(), sizeof(header));
  const auto section = [&](size_t index) {
    Elf64_Shdr found{};
    const size_t at = header.e_shoff + index * sizeof(found);
    if (at + sizeof(found) <= file.size()) std::memcpy(&found, file.data() + at, sizeof(found));
    return found;
  };
  const Elf64_Shdr names = section(header.e_shstrndx);
  for (size_t i = 0; i < header.e_shnum; ++i) {
    const Elf64_Shdr one = section(i);
    const size_t name_at = names.sh_offset + one.sh_name;
    if (one.sh_type == SHT_NOBITS || one.sh_size == 0 || name_at > file.size()) continue;
    if (one.sh_offset + one.sh_size > file.size()) continue;
    const std::string_view rest(reinterpret_cast<const char*>(file.data()) + name_at,
                                file.size() - name_at);
    if (rest.starts_with(prefix)) ranges.push_back({one.sh_offset, one.sh_size});
  }
  return ranges;
}

class Mutator {
 public:
  explicit Mutator(uint64_t seed) : random_(seed) {}
  Input Change(Input input, const std::vector<Input>& others) {
    for (size_t i = 0, count = 1 + Pick(4); i < count; ++i) ChangeOnce(input, others);
    if (input.size() > kMaxBytes) input.resize(kMaxBytes);
    return input;
  }
  Input ChangeWithin(Input input, const std::vector<Range>& ranges) {
    for (size_t i = 0, count = 1 + Pick(16); i < count && !ranges.empty(); ++i) {
      const Range& range = ranges[Pick(ranges.size())];
      const size_t at = range.begin + Pick(range.size);
      const size_t rest = range.begin + range.size - at;
      switch (Pick(4)) {
        case 0:
          input[at] ^= static_cast<uint8_t>(1u << Pick(8));
          break;
        case 1:
          input[at] = static_cast<uint8_t>(Pick(256));
          break;
        case 2: {
          const uint64_t number = kInteresting[Pick(std::size(kInteresting))];
          std::memcpy(input.data() + at, &number, std::min<size_t>(rest, size_t{1} << Pick(4)));
          break;
        }
        default: {
          const size_t bytes = Pick(std::min<size_t>(rest, 64) + 1);
          const size_t from = range.begin + Pick(range.size - bytes + 1);
          std::memmove(input.data() + at, input.data() + from, bytes);
        }
      }
    }
    return input;
  }
  size_t Pick(size_t bound) { return bound == 0 ? 0 : static_cast<size_t>(random_() % bound); }

 private:
  void ChangeOnce(Input& input, const std::vector<Input>& others) {
    const size_t at = Pick(input.size() + 1);
    const size_t rest = input.size() - at;
    const auto place = input.begin() + static_cast<ptrdiff_t>(at);
    const size_t length = Pick(std::min<size_t>(rest, size_t{1} << Pick(12)) + 1);
    switch (Pick(6)) {
      case 0:
        if (rest > 0) *place ^= static_cast<uint8_t>(1u << Pick(8));
        return;
      case 1:
        if (rest > 0) *place = static_cast<uint8_t>(Pick(256));
        return;
      case 2: {
        const uint64_t number = kInteresting[Pick(std::size(kInteresting))];
        std::memcpy(input.data() + at, &number, std::min<size_t>(rest, size_t{1} << Pick(4)));
        return;
      }
      case 3:
        input.erase(place, place + static_cast<ptrdiff_t>(length));
        return;
      case 4: {
        const Input piece(place, place + static_cast<ptrdiff_t>(length));
        input.insert(place, piece.begin(), piece.end());
        return;
      }
      default: {
        const Input& other = others[Pick(others.size())];
        const size_t from = Pick(other.size() + 1);
        const size_t bytes = std::min(other.size() - from, length + Pick(64));
        input.insert(place, other.begin() + static_cast<ptrdiff_t>(from),
                     other.begin() + static_cast<ptrdiff_t>(from + bytes));
        return;
      }
    }
  }

  std::mt19937_64 random_;
};

std::vector<fs::path> FilesOf(const std::vector<std::string>& paths) {
  std::vector<fs::path> files;
  for (const std::string& path : paths) {
    if (fs::is_regular_file(path)) files.emplace_back(path);
    if (!fs::is_directory(path)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(path)) {
      if (entry.is_regular_file()) files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());  // the order of directories differs
  return files;
}

Input Read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

void Write(const std::string& path, const Input& input) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(input.data()),
             static_cast<std::streamsize>(input.size()));
}

double CpuSeconds() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

struct Runs {
  std::string save;
  std::string slowest;
  double slowest_seconds = 0;
};

void Run(const Input& input, Runs& runs) {
  if (!runs.save.empty()) Write(runs.save, input);
  // Of exactly the size, so that a read beyond its end is detected.
  const auto copy = std::make_unique<uint8_t[]>(input.size());
  std::copy(input.begin(), input.end(), copy.get());
  const double begin = CpuSeconds();
  LLVMFuzzerTestOneInput(copy.get(), input.size());
  const double seconds = CpuSeconds() - begin;
  if (seconds <= runs.slowest_seconds) return;
  runs.slowest_seconds = seconds;
  if (!runs.slowest.empty()) Write(runs.slowest, input);
}

}  // namespace

int main(int argc, char** argv) {
  size_t mutations = 0;
  uint64_t seed = 20261122;
  std::string sections;
  Runs runs;
  std::vector<std::string> paths;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "--mutations" && i + 1 < argc) {
      mutations = std::strtoull(argv[++i], nullptr, 10);
    } else if (argument == "--seed" && i + 1 < argc) {
      seed = std::strtoull(argv[++i], nullptr, 10);
    } else if (argument == "--sections" && i + 1 < argc) {
      sections = argv[++i];
    } else if (argument == "--save" && i + 1 < argc) {
      runs.save = argv[++i];
    } else if (argument == "--slowest" && i + 1 < argc) {
      runs.slowest = argv[++i];
    } else {
      paths.emplace_back(argument);
    }
  }
  std::vector<Input> inputs;
  for (const fs::path& file : FilesOf(paths)) inputs.push_back(Read(file));
  if (inputs.empty()) {
    std::fprintf(stderr, "no input in the given paths\n");
    return 2;
  }
  Run({}, runs);
  for (const Input& input : inputs) Run(input, runs);
  Mutator mutator(seed);
  for (size_t i = 0; i < mutations; ++i) {
    const Input& input = inputs[mutator.Pick(inputs.size())];
    Run(sections.empty() ? mutator.Change(input, inputs)
                         : mutator.ChangeWithin(input, SectionsOf(input, sections)),
        runs);
  }
  std::printf("%zu inputs and %zu changes of them, the slowest took %.4f s\n", inputs.size(),
              mutations, runs.slowest_seconds);
  return 0;
}
