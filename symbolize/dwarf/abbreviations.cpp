#include "symbolize/dwarf/abbreviations.h"

#include "symbolize/dwarf/constants.h"

namespace xpu::dwarf {
namespace {

constexpr int kVariable = -1;

// DWARF 2 wrote references between units as addresses.
int RefAddrBytes(UnitFormat format) {
  return format.version <= 2 ? format.address_bytes : format.offset_bytes;
}

// kVariable: it says so itself, or it is not known.
int FixedBytes(uint16_t form, UnitFormat format) {
  switch (form) {
    case kFormFlagPresent:
    case kFormImplicitConst:
      return 0;
    case kFormData1:
    case kFormRef1:
    case kFormFlag:
    case kFormStrx1:
    case kFormAddrx1:
      return 1;
    case kFormData2:
    case kFormRef2:
    case kFormStrx2:
    case kFormAddrx2:
      return 2;
    case kFormStrx3:
    case kFormAddrx3:
      return 3;
    case kFormData4:
    case kFormRef4:
    case kFormRefSup4:
    case kFormStrx4:
    case kFormAddrx4:
      return 4;
    case kFormData8:
    case kFormRef8:
    case kFormRefSig8:
    case kFormRefSup8:
      return 8;
    case kFormData16:
      return 16;
    case kFormAddr:
      return format.address_bytes;
    case kFormStrp:
    case kFormLineStrp:
    case kFormSecOffset:
    case kFormStrpSup:
    case kFormGnuRefAlt:
    case kFormGnuStrpAlt:
      return format.offset_bytes;
    case kFormRefAddr:
      return RefAddrBytes(format);
    default:
      return kVariable;
  }
}

// The form that an indirect one names. One within another has no use.
uint16_t IndirectForm(ByteReader& reader) {
  const uint64_t form = reader.Uleb();
  if (form > UINT16_MAX || form == kFormIndirect || form == kFormImplicitConst) {
    reader.Fail();
    return 0;
  }
  return static_cast<uint16_t>(form);
}

}  // namespace

FormValue ReadForm(ByteReader& reader, UnitFormat format, uint16_t form, int64_t implicit) {
  if (form == kFormIndirect) form = IndirectForm(reader);
  FormValue value{.form = form, .number = 0, .text = {}};
  const int fixed = FixedBytes(form, format);
  if (fixed > 0 && fixed <= 8) {
    value.number = reader.Fixed(static_cast<unsigned>(fixed));
    return value;
  }
  switch (form) {
    case kFormImplicitConst:
      value.number = static_cast<uint64_t>(implicit);
      break;
    case kFormFlagPresent:
      value.number = 1;
      break;
    case kFormData16:
      reader.Skip(16);
      break;
    case kFormString:
      value.text = reader.Text();
      break;
    case kFormSdata:
      value.number = static_cast<uint64_t>(reader.Sleb());
      break;
    case kFormUdata:
    case kFormRefUdata:
    case kFormStrx:
    case kFormAddrx:
    case kFormLoclistx:
    case kFormRnglistx:
    case kFormGnuAddrIndex:
    case kFormGnuStrIndex:
      value.number = reader.Uleb();
      break;
    case kFormBlock1:
      reader.Skip(reader.U8());
      break;
    case kFormBlock2:
      reader.Skip(reader.U16());
      break;
    case kFormBlock4:
      reader.Skip(reader.U32());
      break;
    case kFormBlock:
    case kFormExprloc:
      reader.Skip(reader.Uleb());
      break;
    default:
      reader.Fail();
  }
  return value;
}

AbbreviationTable::AbbreviationTable(std::string_view section, uint64_t offset, UnitFormat format,
                                     Budget& budget)
    : format_(format) {
  ByteReader reader(section, offset);
  while (!reader.empty() && !budget.spent()) {
    const uint64_t before = reader.offset();
    const uint64_t code = reader.Uleb();
    if (code == 0) break;
    Abbreviation abbreviation;
    abbreviation.tag = static_cast<uint16_t>(reader.Uleb());
    abbreviation.has_children = reader.U8() != 0;
    ReadAttributes(reader, abbreviation);
    budget.Spend(reader.offset() - before);
    if (reader.failed()) break;
    if (code == abbreviations_.size() + 1) {
      abbreviations_.push_back(abbreviation);
    } else {
      others_.emplace(code, abbreviation);
    }
  }
}

void AbbreviationTable::ReadAttributes(ByteReader& reader, Abbreviation& abbreviation) {
  abbreviation.first_attribute = static_cast<uint32_t>(attributes_.size());
  abbreviation.first_step = static_cast<uint32_t>(steps_.size());
  Step step;
  while (!reader.failed()) {
    AttributeSpec spec;
    spec.name = static_cast<uint16_t>(reader.Uleb());
    spec.form = static_cast<uint16_t>(reader.Uleb());
    if (spec.form == kFormImplicitConst) spec.implicit = reader.Sleb();
    if (spec.name == 0 && spec.form == 0) break;
    attributes_.push_back(spec);
    abbreviation.has_code |= spec.name == kAtLowPc || spec.name == kAtRanges;
    const int fixed = FixedBytes(spec.form, format_);
    if (fixed >= 0) {
      step.bytes += static_cast<uint32_t>(fixed);
      continue;
    }
    step.form = spec.form;
    steps_.push_back(step);
    step = {};
  }
  if (step.bytes != 0) steps_.push_back(step);
  abbreviation.attribute_count =
      static_cast<uint32_t>(attributes_.size()) - abbreviation.first_attribute;
  abbreviation.step_count = static_cast<uint32_t>(steps_.size()) - abbreviation.first_step;
}

void AbbreviationTable::SkipForm(ByteReader& reader, uint16_t form) const {
  switch (form) {
    case kFormExprloc:
    case kFormBlock:
      reader.Skip(reader.Uleb());
      break;
    case kFormUdata:
    case kFormSdata:
    case kFormStrx:
    case kFormAddrx:
    case kFormLoclistx:
    case kFormRnglistx:
      reader.SkipLeb();
      break;
    default:
      ReadForm(reader, format_, form, 0);
  }
}

}  // namespace xpu::dwarf
