#include "format/version.h"

#include <capnp/common.h>
#include <zstd.h>

#include "format/base/text.h"
#include "format/block.h"

namespace xpu {

std::string CaptureFormatVersion() {
  return Format("container {}, reader generation {}", kContainerVersion, kReaderGeneration);
}

std::string CaptureLibraries() {
  return Format("Cap'n Proto {}.{}.{}, Zstandard {}", CAPNP_VERSION_MAJOR, CAPNP_VERSION_MINOR,
                CAPNP_VERSION_MICRO, ZSTD_versionString());
}

}  // namespace xpu
