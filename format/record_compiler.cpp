// A plugin of the Cap'n Proto compiler: what C++ and the manual need to know of the records, from
// the one description of them in capture.capnp. Writes into the current directory
//   format/records.h        enums, structs, VisitFields, the list of kinds
//   xpu-capture-records.roff  their tables in xpu-capture(5)
// Refuses a field that is not described, or whose name contradicts what is said of it.
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <capnp/message.h>
#include <capnp/schema.capnp.h>
#include <capnp/serialize.h>
#include <kj/io.h>

#include "format/base/text.h"

namespace xpu {
namespace {

namespace schema = capnp::schema;

[[noreturn]] void Fail(std::string_view where, std::string_view why) {
  std::cerr << "capture.capnp: " << where << ": " << why << '\n';
  std::exit(1);
}

std::string_view View(capnp::Text::Reader text) { return {text.cStr(), text.size()}; }

bool IsUpper(char c) { return c >= 'A' && c <= 'Z'; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// "deviceId" and "DeviceId" to "device_id".
std::string Snake(std::string_view camel, bool splits_digits) {
  std::string snake;
  for (const char c : camel) {
    if (!snake.empty() && (IsUpper(c) || (splits_digits && IsDigit(c)))) snake += '_';
    snake += IsUpper(c) ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return snake;
}

// "inProcess" to "kInProcess".
std::string Constant(std::string_view camel) {
  std::string name = "k" + std::string(camel);
  if (name[1] >= 'a' && name[1] <= 'z') name[1] = static_cast<char>(name[1] - 'a' + 'A');
  return name;
}

using Lines = std::vector<std::string>;

Lines LinesOf(capnp::Text::Reader comment) {
  Lines lines;
  std::istringstream text(comment.cStr());
  for (std::string line; std::getline(text, line);) {
    while (line.ends_with(' ')) line.pop_back();
    lines.push_back(line);
  }
  return lines;
}

// ---- the description ---------------------------------------------------------------------------

struct Type {
  std::string_view cpp;     // of the member; empty: an enum
  std::string_view manual;  // empty: nothing to say
};

const std::map<std::string_view, Type> kTypes = {
    {"u8", {"uint8_t", ""}},
    {"u16", {"uint16_t", ""}},
    {"u32", {"uint32_t", ""}},
    {"u64", {"uint64_t", ""}},
    {"i32", {"int32_t", "signed"}},
    {"i64", {"int64_t", "signed"}},
    {"flag", {"bool", "0 or 1"}},
    {"text", {"StringId", "text"}},
    {"bytes", {"StringId", "bytes"}},
    {"stack", {"StackId", "a stack"}},
    {"instance", {"InstanceId", "an instance id"}},
    {"enumeration", {"", ""}},
};

struct Field {
  std::string name;
  std::string type;  // in C++
  std::string initial;
  std::string clock;    // in C++; empty: not a time
  std::string meaning;  // in C++; empty: a plain number
  std::string manual;   // what it is, in words
  Lines comment;
};

struct Enumerant {
  std::string constant;
  std::string name;
  Lines comment;
};

struct Enum {
  std::string name;
  Lines comment;
  std::vector<Enumerant> values;
};

struct Event {
  std::string name;
  std::string list;
  Lines comment;
  std::vector<Field> fields;
  std::vector<std::string> enums;
};

class Description {
 public:
  explicit Description(schema::CodeGeneratorRequest::Reader request) {
    for (const auto node : request.getNodes()) nodes_.emplace(node.getId(), node);
    for (const auto info : request.getSourceInfo()) infos_.emplace(info.getId(), info);
    for (const auto& [id, node] : nodes_) by_name_.emplace(NameOf(node), id);
    for (const auto list : Named("Events").getStruct().getFields()) {
      Event event = ReadEvent(nodes_.at(list.getSlot().getType().getStruct().getTypeId()));
      event.list = Snake(View(list.getName()), false);
      events_.push_back(std::move(event));
    }
  }

  const std::vector<Event>& events() const { return events_; }

  Enum ReadEnum(const std::string& name) const {
    const schema::Node::Reader node = Named(name);
    if (!node.isEnum()) Fail(name, "is not an enum");
    const auto info = infos_.at(node.getId());
    Enum result{name, LinesOf(info.getDocComment()), {}};
    unsigned place = 0;
    for (const auto value : node.getEnum().getEnumerants()) {
      if (value.getCodeOrder() != place) Fail(name, "its values are not in their order");
      result.values.push_back({Constant(View(value.getName())), Snake(View(value.getName()), false),
                               LinesOf(info.getMembers()[place++].getDocComment())});
    }
    return result;
  }

 private:
  static std::string NameOf(schema::Node::Reader node) {
    return std::string(View(node.getDisplayName()).substr(node.getDisplayNamePrefixLength()));
  }

  schema::Node::Reader Named(const std::string& name) const {
    const auto found = by_name_.find(name);
    if (found == by_name_.end()) Fail(name, "there is no such thing");
    return nodes_.at(found->second);
  }

  Event ReadEvent(schema::Node::Reader node) const {
    const auto info = infos_.at(node.getId());
    Event event{NameOf(node), {}, LinesOf(info.getDocComment()), {}, {}};
    unsigned place = 0;
    for (const auto field : node.getStruct().getFields()) {
      // Columns are found by their places: that of the pointer is one less, `rows` is no column.
      const bool is_rows = View(field.getName()) == "rows";
      if (field.getCodeOrder() != place || is_rows != (place == 0) ||
          (place > 0 && field.getSlot().getOffset() + 1 != place)) {
        Fail(event.name, Format("{} is not in its place", View(field.getName())));
      }
      if (place > 0) {
        event.fields.push_back(ReadField(event, field));
        event.fields.back().comment = LinesOf(info.getMembers()[place].getDocComment());
      }
      ++place;
    }
    return event;
  }

  Field ReadField(Event& event, schema::Field::Reader field) const {
    Field result;
    result.name = Snake(View(field.getName()), true);
    const std::string where = event.name + "." + result.name;
    const auto say = [&result](std::string_view text) {
      if (text.empty()) return;
      result.manual += result.manual.empty() ? "" : ", ";
      result.manual += text;
    };
    std::string unit;
    for (const auto annotation : field.getAnnotations()) {
      const std::string name = NameOf(nodes_.at(annotation.getId()));
      const auto value = annotation.getValue();
      if (const auto type = kTypes.find(name); type != kTypes.end()) {
        if (!result.type.empty()) Fail(where, "has two types");
        result.type = name == "enumeration" ? std::string(View(value.getText()))
                                            : std::string(type->second.cpp);
        say(type->second.manual);
        if (name == "bytes") result.meaning = "Meaning::kBytes";
        if (name == "enumeration") result.initial = SetEnum(event, result);
      } else if (name == "unit") {
        unit = View(value.getText());
        say(unit);
      } else if (name == "time") {
        const Enum clocks = ReadEnum("Clock");
        const Enumerant& clock = clocks.values.at(value.getEnum());
        result.clock = "Clock::" + clock.constant;
        say(clock.name == "cupti" ? "ns, CUPTI's clock"
                                  : Format("ns, CLOCK_{}", Upper(clock.name)));
      } else if (name == "is") {
        const Enum meanings = ReadEnum("Meaning");
        const Enumerant& meaning = meanings.values.at(value.getEnum());
        result.meaning = "Meaning::" + meaning.constant;
        if (meaning.name == "process") say("a process or thread id");
        if (meaning.name == "address") say("an address");
        if (meaning.name == "stack_flags") say("how the stack was taken");
      }
    }
    if (result.type.empty()) Fail(where, "has no type");
    if (result.initial.empty() && !result.type.ends_with("Id")) {
      result.initial = result.type == "bool" ? "false" : "0";
    }
    if (result.name.ends_with("_ns") != !result.clock.empty())
      Fail(where, "a name with _ns and $time go together");
    if (result.name.ends_with("_bytes") && unit != "bytes") Fail(where, "lacks the unit bytes");
    return result;
  }

  std::string SetEnum(Event& event, Field& field) const {
    const Enum read = ReadEnum(field.type);
    event.enums.push_back(field.type);
    for (const Enumerant& value : read.values) {
      field.manual += field.manual.empty() ? "" : ", ";
      field.manual += value.name;
    }
    return field.type + "::" + read.values.front().constant;
  }

  static std::string Upper(std::string text) {
    for (char& c : text) c = static_cast<char>(c - 'a' + 'A');
    return text;
  }

  std::map<uint64_t, schema::Node::Reader> nodes_;
  std::map<uint64_t, schema::Node::SourceInfo::Reader> infos_;
  std::map<std::string, uint64_t> by_name_;
  std::vector<Event> events_;
};

// ---- C++ ---------------------------------------------------------------------------------------

void WriteComment(std::ostream& out, std::string_view indent, const Lines& comment) {
  for (const std::string& line : comment) out << indent << "// " << line << '\n';
}

// A declaration with its comment after it, or above where that is long.
void WriteMember(std::ostream& out, const std::string& declaration, const Lines& comment) {
  const bool is_short =
      comment.size() == 1 && declaration.size() + comment.front().size() + 7 <= 100;
  if (!is_short) WriteComment(out, "  ", comment);
  out << "  " << declaration;
  if (is_short) out << "  // " << comment.front();
  out << '\n';
}

void WriteEnum(std::ostream& out, const Enum& type) {
  WriteComment(out, "", type.comment);
  out << "// Values are stored in the file.\nenum class " << type.name << " : uint8_t {\n";
  unsigned number = 0;
  for (const Enumerant& value : type.values) {
    WriteMember(out, Format("{} = {},", value.constant, number++), value.comment);
  }
  out << "};\n\n// Empty: a newer version's value.\nconstexpr std::string_view NameOf(" << type.name
      << " value) {\n  switch (value) {\n";
  for (const Enumerant& value : type.values) {
    out << "    case " << type.name << "::" << value.constant << ":\n      return \"" << value.name
        << "\";\n";
  }
  out << "  }\n  return {};\n}\n\n";
}

void WriteEvent(std::ostream& out, const Event& event) {
  WriteComment(out, "", event.comment);
  out << "struct " << event.name << " {\n";
  for (const Field& field : event.fields) {
    const std::string initial = field.initial.empty() ? "" : " = " + field.initial;
    WriteMember(out, Format("{} {}{};", field.type, field.name, initial), field.comment);
  }
  out << "};\n\ntemplate <SameEvent<" << event.name
      << "> Event, typename Visit>\nconstexpr void VisitFields(Event& event, Visit&& visit) {\n";
  for (const Field& field : event.fields) {
    out << "  visit(FieldInfo{\"" << field.name << '"';
    if (!field.clock.empty() || !field.meaning.empty()) {
      out << ", " << (field.clock.empty() ? "Clock::kNone" : field.clock);
    }
    if (!field.meaning.empty()) out << ", " << field.meaning;
    out << "}, event." << field.name << ");\n";
  }
  out << "}\n\ntemplate <>\ninline constexpr std::string_view kEventName<" << event.name << "> = \""
      << Snake(event.name, false) << "\";\n\n";
}

void WriteHeader(const Description& description, std::ostream& out) {
  out << "// Made from capture.capnp: include format/events.h.\n#pragma once\n\n"
         "#include <cstdint>\n#include <string_view>\n\n"
         "#include \"format/field_info.h\"\n#include \"format/stack.h\"\n\nnamespace xpu {\n\n"
         "// \"kernel\"\ntemplate <typename Event>\n"
         "inline constexpr std::string_view kEventName = {};\n\n"
         "// VisitFields(event, visit) calls visit(FieldInfo, field) for each field, in order.\n\n";
  std::set<std::string> written;
  for (const Event& event : description.events()) {
    for (const std::string& name : event.enums) {
      if (written.insert(name).second) WriteEnum(out, description.ReadEnum(name));
    }
    WriteEvent(out, event);
  }
  out << "// X(type, list) for each kind of event, in the order of capture.capnp.\n"
         "#define XPU_EVENT_LISTS(X)";
  for (const Event& event : description.events()) {
    out << " \\\n  X(" << event.name << ", " << event.list << ')';
  }
  out << "\n\n}  // namespace xpu\n";
}

// ---- the manual --------------------------------------------------------------------------------

std::string Roff(std::string_view text) {
  std::string roff;
  for (const char c : text) {
    if (c == '\\') {
      roff += "\\e";
    } else if (c == '-') {
      roff += "\\-";
    } else if (c == '`') {
      roff += '"';
    } else {
      roff += c;
    }
  }
  return roff;
}

void WriteText(std::ostream& out, const Lines& lines) {
  for (const std::string& line : lines) {
    out << (line.starts_with('.') || line.starts_with('\'') ? "\\&" : "") << Roff(line) << '\n';
  }
}

void WriteManual(const Description& description, std::ostream& out) {
  for (const Event& event : description.events()) {
    out << ".SS " << Snake(event.name, false) << '\n';
    WriteText(out, event.comment);
    out << ".PD 0\n";
    for (const Field& field : event.fields) {
      out << ".TP\n.B " << field.name << '\n';
      Lines text = field.comment;
      if (!field.manual.empty()) {
        text.insert(text.begin(), field.manual + (text.empty() ? "" : ";"));
      }
      if (text.empty()) text.emplace_back("a number");
      WriteText(out, text);
    }
    out << ".PD\n";
  }
}

int Compile() {
  capnp::ReaderOptions options;
  options.traversalLimitInWords = UINT64_MAX;
  capnp::StreamFdMessageReader message(0, options);
  const Description description(message.getRoot<schema::CodeGeneratorRequest>());
  std::ofstream header("format/records.h");
  WriteHeader(description, header);
  std::ofstream manual("xpu-capture-records.roff");
  WriteManual(description, manual);
  header.close();
  manual.close();
  if (header && manual) return 0;
  std::cerr << "cannot write into the current directory\n";
  return 1;
}

}  // namespace
}  // namespace xpu

int main() { return xpu::Compile(); }
