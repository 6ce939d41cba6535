package trie

import "testing"

// useHash makes all tries use another hash until the test is over. Such a test
// cannot be parallel.
func useHash(t testing.TB, h func(string) uint64) {
	was := hash
	hash = h
	t.Cleanup(func() { hash = was })
}

// testHash is a good hash that, unlike the real one, is the same in each run.
func testHash(key string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(key) {
		h = (h ^ uint64(key[i])) * 1099511628211
	}
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}

// masks make a good hash bad: keys that differ in none of a mask's bits collide
// in full, and those that differ in a late bit only share a long way down.
var masks = []uint64{
	1<<64 - 1,             // a good hash
	0,                     // one value
	1,                     // two values, which part ways at once
	1 << 59,               // two values, which part ways on the last full level
	1 << 63,               // two values, which part ways in the last bit
	0xf << 60,             // the last level only, which is short of two bits
	0x3f,                  // the first level only
	0x3f<<30 | 1<<60,      // two levels far apart
	0x1111_1111_1111_1111, // few on each level
	0xffff_ffff << 32,     // a long way before anything parts
}
