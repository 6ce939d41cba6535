package trie

import "testing"

// FuzzEditor is best run with -fuzzminimizetime=20x: by default, the fuzzer can
// spend a minute on making one new input shorter.
func FuzzEditor(f *testing.F) {
	for i := range masks {
		f.Add([]byte(randomProgram(uint64(i), byte(i))))
	}
	const set, del, freeze, restart = 0, 3, 6, 7
	f.Add([]byte{1, set, 1, set, 2, freeze, 0, del, 1, del, 2, restart, 1, del, 1})
	f.Add([]byte{0, set, 1, freeze, 0, set, 1, restart, 1, set, 2, freeze, 0, restart, 1, set, 3})
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 2000 {
			t.Skip("the checks after each step make long programs slow, and they find no more")
		}
		program(data).run(t)
	})
}
