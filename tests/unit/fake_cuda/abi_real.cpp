#include <cuda.h>
#include <cupti.h>

#define XPU_ABI_FUNCTION RealAbi
#include "abi_list.inc"
