// Functions without a frame, each called by one function of its own, and C, which Go calls on another
// stack. Go inlines none of them.
//
//	leaves MILLISECONDS
package main

/*
__attribute__((noinline)) static long c_leaf(long n) {
  volatile long x = 1;
  for (long i = 0; i < n; i++) x = x * 3 + i;
  return x;
}
__attribute__((noinline)) static long c_caller(long n) { return c_leaf(n) + 1; }
*/
import "C"

import (
	"bytes"
	"os"
	"strconv"
	"time"
)

var a, b = make([]byte, 1<<20), make([]byte, 1<<20)

//go:noinline
func mover() int { copy(a, b); return int(a[7]) }

//go:noinline
func eraser() int {
	for i := range a {
		a[i] = 0
	}
	return int(a[3])
}

//go:noinline
func comparer() int {
	if bytes.Equal(a, b) {
		return 1
	}
	return 0
}

//go:noinline
func finder() int { return bytes.IndexByte(b, 9) }

//go:noinline
func goCaller() int { return int(C.c_caller(200000)) + 1 }

//go:noinline
func adder(n int) int {
	sum := 0
	for i := 0; i < n; i++ {
		sum = sum*3 + i
	}
	return sum
}

//go:noinline
func middle() int {
	sum := mover() + eraser() + goCaller() + adder(200000)
	for i := 0; i < 8; i++ { // each takes a tenth of the time of the others
		sum += comparer() + finder()
	}
	return sum
}

func main() {
	milliseconds, _ := strconv.Atoi(os.Args[1])
	end := time.Now().Add(time.Duration(milliseconds) * time.Millisecond)
	sum := 0
	for time.Now().Before(end) {
		sum += middle()
	}
	os.Exit(sum & 0)
}
