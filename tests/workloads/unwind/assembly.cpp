// Calls through the functions of assembly.S.
//   assembly [MILLISECONDS]
#include "unwind.h"

using Leaf = void(uint64_t);
extern "C" {
void AsmPlain(Leaf* leaf, uint64_t amount);
void AsmAligned(Leaf* leaf, uint64_t amount);
void AsmFramePointer(Leaf* leaf, uint64_t amount);
void AsmLost(Leaf* leaf, uint64_t amount);
void AsmLostZero(Leaf* leaf, uint64_t amount);
void AsmWrong(Leaf* leaf, uint64_t amount);
void AsmWrongZero(Leaf* leaf, uint64_t amount);
void LeafAsmSystemCalls(uint64_t amount);
}

XPU_LEAF(LeafAsmPlain)
XPU_LEAF(LeafAsmAligned)
XPU_LEAF(LeafAsmFramePointer)
XPU_LEAF(LeafAsmLost)
XPU_LEAF(LeafAsmLostZero)
XPU_LEAF(LeafAsmWrong)
XPU_LEAF(LeafAsmWrongZero)

using Through = void(Leaf* leaf, uint64_t amount);

XPU_FRAME void RunAssembly(Through* through, Leaf* leaf, uint64_t amount) {
  XPU_SPOIL_FRAME_POINTER();
  through(leaf, amount);
  XPU_BARRIER();
}

int main(int argc, char** argv) {
  const uint64_t amount = unwind::Amount(unwind::Milliseconds(argc, argv));
  RunAssembly(AsmPlain, LeafAsmPlain, amount);
  RunAssembly(AsmAligned, LeafAsmAligned, amount);
  RunAssembly(AsmFramePointer, LeafAsmFramePointer, amount);
  RunAssembly(AsmLost, LeafAsmLost, amount);
  RunAssembly(AsmLostZero, LeafAsmLostZero, amount);
  RunAssembly(AsmWrong, LeafAsmWrong, amount);
  RunAssembly(AsmWrongZero, LeafAsmWrongZero, amount);
  RunAssembly(AsmPlain, LeafAsmSystemCalls, amount);
  using unwind::Expect;
  Expect("LeafAsmPlain", "LeafAsmPlain;AsmPlain;RunAssembly" XPU_BELOW_MAIN);
  Expect("LeafAsmAligned", "LeafAsmAligned;AsmAligned;RunAssembly" XPU_BELOW_MAIN);
  Expect("LeafAsmFramePointer", "LeafAsmFramePointer;AsmFramePointer;RunAssembly" XPU_BELOW_MAIN);
  Expect("LeafAsmLost", "LeafAsmLost;AsmLost", "no_rule");
  Expect("LeafAsmLostZero", "LeafAsmLostZero;AsmLostZero", "no_rule");
  Expect("LeafAsmWrong", "LeafAsmWrong;AsmWrong", "not_called");
  Expect("LeafAsmWrongZero", "LeafAsmWrongZero;AsmWrongZero", "bad_return");
  Expect("LeafAsmSystemCalls", "LeafAsmSystemCalls;AsmPlain;RunAssembly" XPU_BELOW_MAIN);
  return 0;
}
