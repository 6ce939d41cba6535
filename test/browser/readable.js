// What a reader would stumble over, as an object for page_test.go.
(() => {
	const width = document.documentElement.clientWidth;
	const colours = (text) => (text.match(/rgba?\([^)]*\)/g) || []).map((c) => c.match(/[\d.]+/g).map(Number));
	const opaque = (c) => c.length < 4 || c[3] > 0;
	// The colours that an element's text may stand on.
	const grounds = (e) => {
		for (; e; e = e.parentElement) {
			const style = getComputedStyle(e);
			const all = [...colours(style.backgroundImage), ...colours(style.backgroundColor)].filter(opaque);
			if (all.length) return all;
		}
		return [[255, 255, 255]];
	};
	const luminance = (c) => {
		const [r, g, b] = c.slice(0, 3).map((v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4));
		return 0.2126 * r + 0.7152 * g + 0.0722 * b;
	};
	const contrast = (a, b) => {
		const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y);
		return (high + 0.05) / (low + 0.05);
	};
	const faint = [], wide = [];
	let texts = 0;
	const nodes = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	for (let node; (node = nodes.nextNode()); ) {
		const e = node.parentElement, text = node.data.trim(), range = document.createRange();
		range.selectNodeContents(node);
		const box = range.getBoundingClientRect();
		if (!text || !box.width || getComputedStyle(e).visibility === "hidden") continue;
		texts++;
		const [colour] = colours(getComputedStyle(e).color);
		for (const ground of grounds(e)) {
			const c = contrast(colour, ground);
			if (c < 4.5) faint.push(`${c.toFixed(2)}: ${colour} on ${ground}: ${text}`);
		}
		// What a bar is too short for is cut off on purpose: its title says it.
		if (e.closest(".track")) continue;
		if (box.left < -0.5 || box.right > width + 0.5) wide.push(`${box.left} to ${box.right}: ${text}`);
	}
	const page = getComputedStyle(document.body).backgroundColor;
	return {
		Scheme: luminance(colours(page)[0]) > 0.5 ? "light" : "dark",
		Width: window.innerWidth, Overflow: document.documentElement.scrollWidth,
		Faint: faint, Wide: wide, Texts: texts,
		Rows: document.querySelectorAll("tbody").length, Tracks: document.querySelectorAll(".track").length,
	};
})()
