#include "symbolize/text_reader.h"

#include "symbolize/dwarf/reader_process.h"

namespace xpu {

TextReader::TextReader(int root, uid_t user, gid_t group)
    : process_(dwarf::ReaderProcess::StartForTexts(root, user, group, "sources")) {}
TextReader::TextReader(TextReader&&) noexcept = default;
TextReader& TextReader::operator=(TextReader&&) noexcept = default;
TextReader::~TextReader() = default;

Result<std::string> TextReader::Read(const std::string& path) { return process_->TextOf(path); }

bool TextReader::has_failed() const { return !process_->failure().empty(); }

}  // namespace xpu
