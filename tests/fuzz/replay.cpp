// fuzz_TARGET_replay [--mutations N] [--save FILE] PATH...: a fuzz target on the inputs of files
// and folders, then on N changes of them, always the same ones: what CI runs of the fuzzers.
// --save: writes each input to FILE before it is run, so that the last one is the one that failed.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

namespace fs = std::filesystem;
using Input = std::vector<uint8_t>;

constexpr size_t kMaxBytes = size_t{256} << 10;
constexpr uint64_t kInteresting[] = {
    0,          1,          7,          8,         0x7f,       0x80,      0xff,
    0x100,      0xffff,     0x10000,    1u << 24,  0x7fffffff, 1u << 31,  0xffffffff,
    1ull << 32, 1ull << 40, 1ull << 63, ~0ull - 7, ~0ull - 1,  ~0ull / 8, ~0ull};

class Mutator {
 public:
  Input Change(Input input, const std::vector<Input>& others) {
    for (size_t i = 0, count = 1 + Pick(4); i < count; ++i) ChangeOnce(input, others);
    if (input.size() > kMaxBytes) input.resize(kMaxBytes);
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

  std::mt19937_64 random_{20261122};
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
  std::sort(files.begin(), files.end());  // the order of folders differs
  return files;
}

Input Read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

void Run(const Input& input, const std::string& save) {
  if (!save.empty()) {
    std::ofstream(save, std::ios::binary)
        .write(reinterpret_cast<const char*>(input.data()),
               static_cast<std::streamsize>(input.size()));
  }
  // Of exactly the size: a read behind it is seen.
  const auto copy = std::make_unique<uint8_t[]>(input.size());
  std::copy(input.begin(), input.end(), copy.get());
  LLVMFuzzerTestOneInput(copy.get(), input.size());
}

}  // namespace

int main(int argc, char** argv) {
  size_t mutations = 0;
  std::string save;
  std::vector<std::string> paths;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "--mutations" && i + 1 < argc) {
      mutations = std::strtoull(argv[++i], nullptr, 10);
    } else if (argument == "--save" && i + 1 < argc) {
      save = argv[++i];
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
  Run({}, save);
  for (const Input& input : inputs) Run(input, save);
  Mutator mutator;
  for (size_t i = 0; i < mutations; ++i) {
    Run(mutator.Change(inputs[mutator.Pick(inputs.size())], inputs), save);
  }
  std::printf("%zu inputs and %zu changes of them\n", inputs.size(), mutations);
  return 0;
}
