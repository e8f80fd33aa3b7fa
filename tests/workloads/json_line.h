// The one line of JSON that a workload prints at its end, built by appending.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

#include <unistd.h>

namespace workload {

class JsonLine {
 public:
  JsonLine() { Open("", '{'); }

  void Add(std::string_view key, std::string_view value) {
    Key(key);
    Quote(value);
  }
  void Add(std::string_view key, const char* value) { Add(key, std::string_view(value)); }
  void Add(std::string_view key, uint64_t value) {
    Key(key);
    text_ += std::to_string(value);
  }
  void AddBool(std::string_view key, bool value) {
    Key(key);
    text_ += value ? "true" : "false";
  }
  // A whole JSON value made elsewhere.
  void AddRaw(std::string_view key, std::string_view json) {
    Key(key);
    text_ += json;
  }

  // An empty key inside an array.
  void BeginObject(std::string_view key) { Open(key, '{'); }
  void EndObject() { Close('}'); }
  void BeginArray(std::string_view key) { Open(key, '['); }
  void EndArray() { Close(']'); }

  std::string Finish() {
    Close('}');
    return std::move(text_);
  }

 private:
  void Open(std::string_view key, char bracket) {
    if (!text_.empty()) Key(key);
    text_ += bracket;
    first_ = true;
  }
  void Close(char bracket) {
    text_ += bracket;
    first_ = false;
  }
  void Key(std::string_view key) {
    if (!first_) text_ += ',';
    first_ = false;
    if (key.empty()) return;
    Quote(key);
    text_ += ':';
  }
  // Only names from the sources and comms of our own pass here: quotes and backslashes suffice.
  void Quote(std::string_view value) {
    text_ += '"';
    for (const char c : value) {
      if (c == '"' || c == '\\') text_ += '\\';
      text_ += c;
    }
    text_ += '"';
  }

  std::string text_;
  bool first_ = true;
};

// What tests/bench/overhead reads: how long the work after the warm-up took, in units of its own.
// Of several threads the sums: then ns over units is what each of them saw.
inline void AddTiming(std::string_view unit, uint64_t units, uint64_t ns, JsonLine* json) {
  json->Add("unit", unit);
  json->Add("timed_units", units);
  json->Add("timed_ns", ns);
}

// One write: the lines of several processes on one pipe do not mix.
inline void PrintLine(std::string line) {
  line += '\n';
  size_t done = 0;
  while (done < line.size()) {
    const ssize_t written = write(STDOUT_FILENO, line.data() + done, line.size() - done);
    if (written <= 0) return;
    done += static_cast<size_t>(written);
  }
}

}  // namespace workload
