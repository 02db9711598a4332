package graph

import "container/heap"

// intHeap is a heap with the smallest int first.
type intHeap []int

func (h *intHeap) push(i int) { heap.Push((*ints)(h), i) }
func (h *intHeap) pop() int   { return heap.Pop((*ints)(h)).(int) }

type ints []int

func (h ints) Len() int           { return len(h) }
func (h ints) Less(i, j int) bool { return h[i] < h[j] }
func (h ints) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *ints) Push(x any)        { *h = append(*h, x.(int)) }
func (h *ints) Pop() any {
	old := *h
	x := old[len(old)-1]
	*h = old[:len(old)-1]
	return x
}
