// Package browser looks at the page of safestore/debug in a real browser, headless
// Chromium: whether it fits a phone and a desk, in light and in dark, can be read,
// and fetches nothing. It has no code of its own.
//
// Its tests are skipped where no Chromium is installed, unless REQUIRE_CHROMIUM is
// set.
package browser
