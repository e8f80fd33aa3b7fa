// The part of NVTX's payload extension that the tests' programs use, with its names and its way to
// find a tool. Where a toolkit is installed its own header takes this one's place.
#pragma once

#include <nvtx3/nvToolsExt.h>

#define NVTX_PAYLOAD_TYPE_EXT ((int32_t)0xDFBD0009)
#define NVTX_PAYLOAD_ENTRY_TYPE_INT 5
#define NVTX_PAYLOAD_ENTRY_TYPE_UINT64 18
#define NVTX_PAYLOAD_ENTRY_TYPE_SIZE 22
#define NVTX_PAYLOAD_SCHEMA_ID_STATIC_START (1 << 24)
#define NVTX_PAYLOAD_SCHEMA_TYPE_STATIC 1
#define NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_TYPE (1 << 2)
#define NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES (1 << 4)
#define NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES (1 << 5)
#define NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_STATIC_SIZE (1 << 6)
#define NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_SCHEMA_ID (1 << 8)
#define NVTX_PAYLOAD_ENUM_ATTR_FIELD_ENTRIES (1 << 2)
#define NVTX_PAYLOAD_ENUM_ATTR_FIELD_NUM_ENTRIES (1 << 3)
#define NVTX_PAYLOAD_ENUM_ATTR_FIELD_SIZE (1 << 4)
#define NVTX_PAYLOAD_ENUM_ATTR_FIELD_SCHEMA_ID (1 << 5)

typedef struct nvtxPayloadData_v1 {
  uint64_t schemaId;
  size_t size;
  const void* payload;
} nvtxPayloadData_t;

typedef struct nvtxPayloadSchemaEntry_v1 {
  uint64_t flags;
  uint64_t type;
  const char* name;
  const char* description;
  uint64_t arrayOrUnionDetail;
  uint64_t offset;
  const void* semantics;
  const void* reserved;
} nvtxPayloadSchemaEntry_t;

typedef struct nvtxPayloadSchemaAttr_v1 {
  uint64_t fieldMask;
  const char* name;
  uint64_t type;
  uint64_t flags;
  const nvtxPayloadSchemaEntry_t* entries;
  size_t numEntries;
  size_t payloadStaticSize;
  size_t packAlign;
  uint64_t schemaId;
  void* extension;
} nvtxPayloadSchemaAttr_t;

typedef struct nvtxPayloadEnum_v1 {
  const char* name;
  uint64_t value;
  int8_t isFlag;
} nvtxPayloadEnum_t;

typedef struct nvtxPayloadEnumAttr_v1 {
  uint64_t fieldMask;
  const char* name;
  const nvtxPayloadEnum_t* entries;
  size_t numEntries;
  size_t sizeOfEnum;
  uint64_t schemaId;
  void* extension;
} nvtxPayloadEnumAttr_t;

enum { xpu_nvtx_payload_slots = 8 };
static intptr_t xpu_nvtx_payload_slot[xpu_nvtx_payload_slots];

// At the first call of any function of the extension, after NVTX itself.
static void xpu_nvtx_attach_payload(void) {
  static int attached;
  struct {
    size_t id;
    size_t slot_count;
    intptr_t* slots;
  } segment = {0, xpu_nvtx_payload_slots, xpu_nvtx_payload_slot};
  struct {
    uint16_t version, struct_size, module, compatibility;
    size_t segment_count;
    void* segments;
    void* get_export;
    const void* extra;
  } module = {NVTX_VERSION, sizeof(module), 2, 0x0104, 1, &segment, NULL, NULL};
  const char* path;
  void* library;
  int (*initialize)(void*);
  if (__atomic_exchange_n(&attached, 1, __ATOMIC_ACQ_REL)) return;
  xpu_nvtx_attach();
  path = getenv("NVTX_INJECTION64_PATH");
  library = path ? dlopen(path, RTLD_LAZY) : NULL;
  if (!library) return;
  *(void**)&initialize = dlsym(library, "InitializeInjectionNvtxExtension");
  if (initialize) initialize(&module);
}

static inline uint64_t nvtxPayloadSchemaRegister(nvtxDomainHandle_t domain,
                                                 const nvtxPayloadSchemaAttr_t* attributes) {
  xpu_nvtx_attach_payload();
  if (!xpu_nvtx_payload_slot[0]) return 0;
  return (
      (uint64_t(*)(nvtxDomainHandle_t, const nvtxPayloadSchemaAttr_t*))xpu_nvtx_payload_slot[0])(
      domain, attributes);
}

static inline uint64_t nvtxPayloadEnumRegister(nvtxDomainHandle_t domain,
                                               const nvtxPayloadEnumAttr_t* attributes) {
  xpu_nvtx_attach_payload();
  if (!xpu_nvtx_payload_slot[1]) return 0;
  return ((uint64_t(*)(nvtxDomainHandle_t, const nvtxPayloadEnumAttr_t*))xpu_nvtx_payload_slot[1])(
      domain, attributes);
}

static inline int nvtxRangePopPayload(nvtxDomainHandle_t domain, const nvtxPayloadData_t* data,
                                      size_t count) {
  xpu_nvtx_attach_payload();
  if (!xpu_nvtx_payload_slot[4]) return -2;
  return ((int (*)(nvtxDomainHandle_t, const nvtxPayloadData_t*, size_t))xpu_nvtx_payload_slot[4])(
      domain, data, count);
}
