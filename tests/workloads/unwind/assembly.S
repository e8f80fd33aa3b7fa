// Functions as people write them by hand: with the stack pointer anywhere, with CFI and without.
// Each calls the function in rdi with the amount in rsi.
  .text

  .macro begin name
  .globl \name
  .type \name, @function
  .p2align 4
\name:
  endbr64
  .endm

  .macro end name
  .size \name, . - \name
  .endm

  .macro call_leaf
  movq %rdi, %rax
  movq %rsi, %rdi
  call *%rax
  .endm

// CFA through the stack pointer, rbp in other use.
begin AsmPlain
  .cfi_startproc
  pushq %rbp
  .cfi_def_cfa_offset 16
  .cfi_offset %rbp, -16
  movl $7, %ebp
  subq $0x1230, %rsp
  .cfi_def_cfa_offset 0x1240
  call_leaf
  addq $0x1230, %rsp
  .cfi_def_cfa_offset 16
  popq %rbp
  .cfi_def_cfa_offset 8
  .cfi_restore %rbp
  ret
  .cfi_endproc
end AsmPlain

// As OpenSSL's multi-buffer and AES-GCM code: an aligned frame, the caller's stack pointer kept in
// it. CFA = *(rsp + 152) + 8, in DWARF: breg7 (rsp) 152, deref, plus_uconst 8; rbp is found from
// the CFA.
begin AsmAligned
  .cfi_startproc
  movq %rsp, %rax
  .cfi_def_cfa_register %rax
  pushq %rbx
  .cfi_offset %rbx, -16
  pushq %rbp
  .cfi_offset %rbp, -24
  subq $0x100, %rsp
  andq $-64, %rsp
  movq %rax, 152(%rsp)
  .cfi_escape 0x0f,0x06,0x77,0x98,0x01,0x06,0x23,0x08
  movl $7, %ebp
  call_leaf
  movq 152(%rsp), %rdx
  .cfi_def_cfa %rdx, 8
  movq -16(%rdx), %rbp
  .cfi_restore %rbp
  movq -8(%rdx), %rbx
  .cfi_restore %rbx
  leaq (%rdx), %rsp
  .cfi_def_cfa_register %rsp
  ret
  .cfi_endproc
end AsmAligned

// CFA = rdx + 8, as in some code for vectors. Does system calls, which leave rdx as it is, so that
// most samples of it are of the kernel. It is a leaf itself: rdi is the amount.
begin LeafAsmSystemCalls
  .cfi_startproc
  movq %rsp, %rdx
  .cfi_def_cfa_register %rdx
  pushq %rbp
  .cfi_offset %rbp, -16
  movl $7, %ebp
  andq $-64, %rsp
0:
  movl $110, %eax  // getppid
  syscall
  decq %rdi
  jnz 0b
  movq -8(%rdx), %rbp
  .cfi_restore %rbp
  movq %rdx, %rsp
  .cfi_def_cfa_register %rsp
  ret
  .cfi_endproc
end LeafAsmSystemCalls

// No CFI, the frame pointer kept: only it leads on.
begin AsmFramePointer
  pushq %rbp
  movq %rsp, %rbp
  subq $0x40, %rsp
  call_leaf
  leave
  ret
end AsmFramePointer

// No CFI, the frame pointer used for something else: nothing leads on.
begin AsmLost
  pushq %rbp
  subq $0x40, %rsp
  movl $7, %ebp
  call_leaf
  addq $0x40, %rsp
  popq %rbp
  ret
end AsmLost

// The same with zero in it, which looks like the outermost frame.
begin AsmLostZero
  pushq %rbp
  subq $0x40, %rsp
  xorl %ebp, %ebp
  call_leaf
  addq $0x40, %rsp
  popq %rbp
  ret
end AsmLostZero

// CFI that knows nothing of the stack that the function takes, on which it has a table of functions.
begin AsmWrong
  .cfi_startproc
  leaq AsmPlain(%rip), %rax
  movl $64, %ecx
0:
  pushq %rax
  pushq %rax
  decl %ecx
  jnz 0b
  pushq %rax
  call_leaf
  addq $0x408, %rsp
  ret
  .cfi_endproc
end AsmWrong

// The same with a zero where the return address would be: not the outermost frame.
begin AsmWrongZero
  .cfi_startproc
  pushq $0
  call_leaf
  addq $8, %rsp
  ret
  .cfi_endproc
end AsmWrongZero

  .section .note.GNU-stack, "", @progbits
