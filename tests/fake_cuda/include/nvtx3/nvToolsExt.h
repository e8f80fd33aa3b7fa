// The part of NVTX that the tests' programs use, with its names and its way to find a tool. Where a
// toolkit is installed its own header takes this one's place.
#pragma once

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <wchar.h>

typedef uint64_t nvtxRangeId_t;
typedef struct nvtxDomainRegistration* nvtxDomainHandle_t;
typedef struct nvtxStringRegistration* nvtxStringHandle_t;

#define NVTX_VERSION 3
#define NVTX_COLOR_ARGB 1
#define NVTX_MESSAGE_TYPE_ASCII 1
#define NVTX_MESSAGE_TYPE_UNICODE 2
#define NVTX_MESSAGE_TYPE_REGISTERED 3
#define NVTX_PAYLOAD_TYPE_UNSIGNED_INT64 1
#define NVTX_PAYLOAD_TYPE_INT64 2
#define NVTX_PAYLOAD_TYPE_DOUBLE 3
#define NVTX_PAYLOAD_TYPE_INT32 5
#define NVTX_PAYLOAD_TYPE_FLOAT 6

typedef struct nvtxEventAttributes_t {
  uint16_t version;
  uint16_t size;
  uint32_t category;
  int32_t colorType;
  uint32_t color;
  int32_t payloadType;
  int32_t reserved0;
  union {
    uint64_t ullValue;
    int64_t llValue;
    double dValue;
    int32_t iValue;
    float fValue;
  } payload;
  int32_t messageType;
  union {
    const char* ascii;
    const wchar_t* unicode;
    nvtxStringHandle_t registered;
  } message;
} nvtxEventAttributes_t;
#define NVTX_EVENT_ATTRIB_STRUCT_SIZE ((uint16_t)sizeof(nvtxEventAttributes_t))

// Every function with its module, its id in there, its result when there is no tool, and its
// parameters.
#define XPU_NVTX_FUNCTIONS(F)                                                                      \
  F(1, 1, void, , nvtxMarkEx, (const nvtxEventAttributes_t* text), (text))                         \
  F(1, 2, void, , nvtxMarkA, (const char* text), (text))                                           \
  F(1, 3, void, , nvtxMarkW, (const wchar_t* text), (text))                                        \
  F(1, 4, nvtxRangeId_t, 0, nvtxRangeStartEx, (const nvtxEventAttributes_t* text), (text))         \
  F(1, 5, nvtxRangeId_t, 0, nvtxRangeStartA, (const char* text), (text))                           \
  F(1, 6, nvtxRangeId_t, 0, nvtxRangeStartW, (const wchar_t* text), (text))                        \
  F(1, 7, void, , nvtxRangeEnd, (nvtxRangeId_t id), (id))                                          \
  F(1, 8, int, -2, nvtxRangePushEx, (const nvtxEventAttributes_t* text), (text))                   \
  F(1, 9, int, -2, nvtxRangePushA, (const char* text), (text))                                     \
  F(1, 10, int, -2, nvtxRangePushW, (const wchar_t* text), (text))                                 \
  F(1, 11, int, -2, nvtxRangePop, (void), ())                                                      \
  F(1, 12, void, , nvtxNameCategoryA, (uint32_t category, const char* name), (category, name))     \
  F(1, 14, void, , nvtxNameOsThreadA, (uint32_t thread, const char* name), (thread, name))         \
  F(5, 1, void, , nvtxDomainMarkEx,                                                                \
    (nvtxDomainHandle_t domain, const nvtxEventAttributes_t* text), (domain, text))                \
  F(5, 2, nvtxRangeId_t, 0, nvtxDomainRangeStartEx,                                                \
    (nvtxDomainHandle_t domain, const nvtxEventAttributes_t* text), (domain, text))                \
  F(5, 3, void, , nvtxDomainRangeEnd, (nvtxDomainHandle_t domain, nvtxRangeId_t id), (domain, id)) \
  F(5, 4, int, -2, nvtxDomainRangePushEx,                                                          \
    (nvtxDomainHandle_t domain, const nvtxEventAttributes_t* text), (domain, text))                \
  F(5, 5, int, -2, nvtxDomainRangePop, (nvtxDomainHandle_t domain), (domain))                      \
  F(5, 8, void, , nvtxDomainNameCategoryA,                                                         \
    (nvtxDomainHandle_t domain, uint32_t category, const char* name), (domain, category, name))    \
  F(5, 10, nvtxStringHandle_t, 0, nvtxDomainRegisterStringA,                                       \
    (nvtxDomainHandle_t domain, const char* text), (domain, text))                                 \
  F(5, 12, nvtxDomainHandle_t, 0, nvtxDomainCreateA, (const char* name), (name))

#define XPU_NVTX_PLACE(module, id, result, none, name, parameters, arguments) \
  static result(*xpu_##name##_place) parameters;
XPU_NVTX_FUNCTIONS(XPU_NVTX_PLACE)
#undef XPU_NVTX_PLACE

typedef void (*xpu_nvtx_function)(void);

static int xpu_nvtx_functions(uint32_t module, xpu_nvtx_function*** table, uint32_t* size) {
  static xpu_nvtx_function* tables[7][16];
  if (module != 1 && module != 5) return 0;
#define XPU_NVTX_ENTRY(module, id, result, none, name, parameters, arguments) \
  tables[module][id] = (xpu_nvtx_function*)&xpu_##name##_place;
  XPU_NVTX_FUNCTIONS(XPU_NVTX_ENTRY)
#undef XPU_NVTX_ENTRY
  *table = tables[module];
  *size = 16;
  return 1;
}

static const void* xpu_nvtx_export_table(uint32_t id) {
  static struct {
    size_t struct_size;
    int (*get)(uint32_t, xpu_nvtx_function***, uint32_t*);
  } callbacks;
  callbacks.struct_size = sizeof(callbacks);
  callbacks.get = xpu_nvtx_functions;
  return id == 1 ? &callbacks : NULL;
}

// At the first call of any function, as NVTX does.
static void xpu_nvtx_attach(void) {
  static int attached;
  const char* path;
  void* library;
  int (*initialize)(const void* (*)(uint32_t));
  if (__atomic_exchange_n(&attached, 1, __ATOMIC_ACQ_REL)) return;
  path = getenv("NVTX_INJECTION64_PATH");
  library = path ? dlopen(path, RTLD_LAZY) : NULL;
  if (!library) return;
  *(void**)&initialize = dlsym(library, "InitializeInjectionNvtx2");
  if (initialize) initialize(xpu_nvtx_export_table);
}

#define XPU_NVTX_FUNCTION(module, id, result, none, name, parameters, arguments) \
  static inline result name parameters {                                         \
    xpu_nvtx_attach();                                                           \
    if (!xpu_##name##_place) return none;                                        \
    return xpu_##name##_place arguments;                                         \
  }
XPU_NVTX_FUNCTIONS(XPU_NVTX_FUNCTION)
#undef XPU_NVTX_FUNCTION
