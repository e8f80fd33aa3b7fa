#include <cuda.h>
#include <cupti.h>

#define XPU_ABI_FUNCTION FakeAbi
#include "abi_list.inc"
