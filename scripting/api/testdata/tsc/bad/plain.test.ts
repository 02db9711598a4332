import { component, htpp } from "weir/test"; // TS2614

const t = component("plain.js");

test("x", () => {
  t.metric("up 1"); // TS2551
  expect(t.metrics(1)).toBe(1); // TS2345
  expect(1).toEquals(1); // TS2551
  expect(t.metrics("a 1").value("a").toFixed()).toBe("1"); // TS2532
});
descirbe("x", () => {}); // TS2552
