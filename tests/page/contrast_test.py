"""Texts stand out from what is behind them, in light and dark, in every view and tab: contrast_test.py TANDEM."""

from page_support import PageTest, main

# Pairs of WCAG 2: the ratio of relative luminances of a text and of what is behind it.
CONTRAST = """least => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const parse = text => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = "transparent";
    canvas.fillStyle = text;
    canvas.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
    return [r, g, b, a / 255];
  };
  const over = ([r, g, b, a], [R, G, B]) => [r * a + R * (1 - a), g * a + G * (1 - a), b * a + B * (1 - a), 1];
  const luminance = colour => {
    const [r, g, b] = colour.slice(0, 3).map(one => one / 255).map(one => one <= 0.03928 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = element => {
    const layers = [];
    for (let at = element; at; at = at.parentElement) {
      const frame = at.matches("g.box, g.box *") && at.closest("g.box").querySelector(".frame");
      const colour = frame ? parse(getComputedStyle(frame).fill) : parse(getComputedStyle(at).backgroundColor);
      layers.push(colour);
      if (colour[3] === 1) break;
    }
    return layers.reverse().reduce((under, layer) => over(layer, under), parse("Canvas"));
  };
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement, style = getComputedStyle(element);
    const box = element.getBoundingClientRect();
    if (!walker.currentNode.textContent.trim() || box.width < 3 || style.visibility !== "visible" || element.closest(".unseen, :disabled, noscript, .twist")) continue;
    const back = behind(element);
    let opacity = 1;
    for (let at = element; at; at = at.parentElement) opacity *= Number(getComputedStyle(at).opacity);
    const ink = parse(element instanceof SVGElement ? style.fill : style.color);
    const [a, b] = [luminance(over([ink[0], ink[1], ink[2], ink[3] * opacity], back)), luminance(back)];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < least) found.push(`${ratio.toFixed(2)} ${element.className.baseVal ?? element.className}: ${walker.currentNode.textContent.trim().slice(0, 30)}`);
  }
  return [...new Set(found)];
}"""


class Light(PageTest):
    def check(self, where):
        self.page.wait_for_timeout(250)
        self.assertEqual([], self.page.evaluate(CONTRAST, 4.5), where)

    def test_every_view_and_tab(self):
        self.select("blocks", "2")
        self.place("on", "cpu")
        self.page.locator("#search").fill("blocks.{0..1}.**")
        self.page.locator("#view .row.is-match").first.wait_for()
        for tab in ("Step", "Copies", "Advice", "Search", "Rules"):
            self.tab(tab)
            self.check(tab)
        for view in ("Table", "Tree", "Graph"):
            self.page.get_by_role("button", name=view, exact=True).click()
            self.check(view)
        self.page.get_by_role("button", name="Table", exact=True).click()
        self.row("head").click(button="right")
        self.check("menu")
        self.page.keyboard.press("Escape")
        self.page.keyboard.press("Control+s")
        self.check("review")
        self.page.keyboard.press("Escape")
        self.page.keyboard.press("?")
        self.check("help")

    def test_a_plan_that_does_not_fit(self):
        self.policy.write_text(self.first_text.replace("2MiB", "400KiB"))
        self.page.get_by_role("button", name="Take its text").click()
        self.page.locator(".verdict .bad").wait_for()
        self.tab("Advice")
        self.page.locator(".offer").first.wait_for()
        self.check("advice")


class Dark(Light):
    scheme = "dark"


if __name__ == "__main__":
    main()
