/*
 * A libcudart whose functions begin as compilers make them begin with -fcf-protection, without a
 * frame pointer, and with an instruction that no probe is cheap on. Each returns another number.
 */
__asm__(
    ".text\n"
    ".globl cudaLaunchKernel, cudaLaunchKernelExC, cudaGraphLaunch\n"
    ".type cudaLaunchKernel, @function\n"
    "cudaLaunchKernel: endbr64\n push %rbp\n mov %rsp, %rbp\n mov $1, %eax\n pop %rbp\n ret\n"
    ".size cudaLaunchKernel, . - cudaLaunchKernel\n"
    ".type cudaLaunchKernelExC, @function\n"
    "cudaLaunchKernelExC: endbr64\n sub $24, %rsp\n mov $2, %eax\n add $24, %rsp\n ret\n"
    ".size cudaLaunchKernelExC, . - cudaLaunchKernelExC\n"
    ".type cudaGraphLaunch, @function\n"
    "cudaGraphLaunch: mov $3, %eax\n ret\n"
    ".size cudaGraphLaunch, . - cudaGraphLaunch\n"
    ".section .note.GNU-stack, \"\", @progbits\n");
