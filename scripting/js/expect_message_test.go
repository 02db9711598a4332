package js_test

import "testing"

// TestExpectMessage: the second argument of expect comes before each failure of the
// expectation.
func TestExpectMessage(t *testing.T) {
	var e expectations
	e.add(`expect(1, "the count").toBe(2)`, "the count: expected 1 to be 2")
	e.add(`expect(1, "the count").toBe(1)`, "")
	e.add(`expect(1, "the count").not.toBe(1)`, "the count: expected 1 not to be 1")
	e.add(`expect(1, "").toBe(2)`, "expected 1 to be 2")
	e.add(`expect(1, undefined).toBe(2)`, "expected 1 to be 2")
	e.add(`expect(1, null).toBe(2)`, "expected 1 to be 2")
	e.add(`expect(1, 7).toBe(2)`, "7: expected 1 to be 2")
	// Promises.
	e.add(`await expect(Promise.resolve(1), "later").resolves.toBe(2)`, "later: expected 1 to be 2")
	e.add(`await expect(Promise.resolve(1), "later").resolves.not.toBe(1)`, "later: expected 1 not to be 1")
	e.add(`await expect(Promise.resolve(1), "later").not.resolves.toBe(1)`, "later: expected 1 not to be 1")
	e.add(`await expect(Promise.reject(new Error("no")), "later").resolves.toBe(1)`, "later: expected the promise to give a value, it was rejected: no")
	e.add(`await expect(Promise.resolve(1), "later").rejects.toThrow("x")`, "later: expected the promise to be rejected, it gave 1")
	e.add(`await expect(Promise.reject(new Error("no")), "later").rejects.toThrow("yes")`, "later: expected [no] to throw yes")
	// An expectation that is kept has its own message.
	e.add(`const one = expect(1, "one"), two = expect(2, "two"); one.toBe(1); two.not.toBe(3); one.toBe(2)`, "one: expected 1 to be 2")
	// A mistake in the test is not a failure of the expectation.
	e.add(`expect(1, "x").resolves.toBe(1)`, "cannot use resolves: it takes a promise, not a number")
	e.run(t, "")
}
