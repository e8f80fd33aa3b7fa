/*
 * void xpu_launch_marker(uint32_t correlation_id, uint32_t domain_and_callback_id,
 *                        uint64_t instance, uint64_t session)
 *
 * Does nothing; xpu-record puts a uprobe on the instruction that the running kernel probes at the
 * least cost: nop5 at +0, nop10 at +5, nop at +15 (wire::kMarkerOffsets). The kernel's fast path
 * for nop5 writes below the stack pointer, hence a function of its own; endbr64 in front would be
 * single-stepped. The bytes are spelled out so that no assembler chooses other encodings.
 */
	.text
	.balign	16
	.globl	xpu_launch_marker
	.type	xpu_launch_marker, @function
xpu_launch_marker:
	.cfi_startproc
	.byte	0x0f, 0x1f, 0x44, 0x00, 0x00
	.byte	0x66, 0x2e, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00
	.byte	0x90
	.byte	0xc3
	.cfi_endproc
	.size	xpu_launch_marker, . - xpu_launch_marker

	.section .note.GNU-stack, "", @progbits
