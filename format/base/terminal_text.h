// Text for people, made of what files and programs say.
#pragma once

#include <string>
#include <string_view>

#include "format/base/result.h"

namespace xpu {

// What a terminal would execute, or cannot show, as "\x1b": control characters but for line ends
// and tabs, and bytes that are not UTF-8; controls of bidirectional text as
// "\u202e". A program chooses the names of its functions and threads;
// with them it must not move the cursor, set the title or answer for who reads them.
std::string ForTerminal(std::string_view text);
// The same of what is to stay on one line: line ends and tabs are written out too.
std::string ForOneLine(std::string_view text);
// As Error::ToString, where the message is one line: the name of a file may have several.
std::string ForTerminal(const Error& error);

}  // namespace xpu
