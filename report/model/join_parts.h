// The captures that one recording was cut into (xpu-record --rotate-size), as the one capture that
// they would have been: what began in one part and ended in the next one meets, and what each part
// repeats so that it can be read alone is there once.
#pragma once

#include <string>
#include <vector>

#include "format/base/result.h"
#include "report/model/model.h"

namespace xpu {

// A capture as it was read.
struct LoadedPart {
  Model model;            // without
  LoadedEvents restated;  // what repeats earlier events, of this capture or of parts before it
};

void AddProblems(ReadProblems& all, const ReadProblems& more);

// A capture, or a part of a recording alone.
Model WithRestated(LoadedPart part);
// Groups the parts of each recording and joins them; other captures stay what they are. kUsage: one
// part twice.
Result<std::vector<Model>> JoinParts(std::vector<LoadedPart> captures);

}  // namespace xpu
