"""Kneser-Ney smoothing from the formulas of Chen & Goodman (1999), with dictionaries and sums."""

from collections import Counter, defaultdict

START = "<s>"


class BruteKneserNey:
    """Lines are lists of words. `discount` is a number, or None for the modified three."""

    def __init__(self, lines, words, order, discount=None, *, sentences):
        self.words, self.order, self.sentences = list(words), order, sentences
        seen = [Counter() for _ in range(order + 1)]
        for context, word in self.positions(lines):
            gram = (*context, word)
            for k in range(1, len(gram) + 1):
                seen[k][gram[-k:]] += 1
        self.count = [Counter() for _ in range(order + 1)]
        for k in range(1, order + 1):
            for gram, times in seen[k].items():
                if k == order or (k > 1 and gram[0] == START):
                    self.count[k][gram] = times
            if k < order:
                self.count[k].update(longer[1:] for longer in seen[k + 1])
        self.followers = defaultdict(dict)
        for k in range(1, order + 1):
            for gram, count in self.count[k].items():
                self.followers[gram[:-1]][gram[-1]] = count
        self.discounts = [None] + [
            [discount] * 3 if discount else self.modified(k) for k in range(1, order + 1)
        ]

    def positions(self, lines):
        """Yield the longest context of each word, and the word; each line ends with <eos>."""
        n = self.order - 1
        if self.sentences:
            for line in lines:
                padded = [START, *line, "<eos>"]
                for position in range(1, len(padded)):
                    yield tuple(padded[max(0, position - n) : position]), padded[position]
        else:
            stream = ["<eos>"] * n + [word for line in lines for word in [*line, "<eos>"]]
            for position in range(n, len(stream)):
                yield tuple(stream[position - n : position]), stream[position]

    def modified(self, k):
        """D1, D2, D3+ of an order; 0.5, 1, 1.5 where the formula says nothing of use."""
        n = Counter(self.count[k].values())
        if not (n[1] and n[2] and n[3] and n[4]):
            return [0.5, 1.0, 1.5]
        y = n[1] / (n[1] + 2 * n[2])
        d = [1 - 2 * y * n[2] / n[1], 2 - 3 * y * n[3] / n[2], 3 - 4 * y * n[4] / n[3]]
        return d if all(0 < d[i] < i + 1 for i in range(3)) else [0.5, 1.0, 1.5]

    def prob(self, word, context):
        followers = self.followers.get(tuple(context))
        below = self.prob(word, context[1:]) if context else 1 / len(self.words)
        if not followers:
            return below
        d1, d2, d3 = self.discounts[len(context) + 1]
        total = sum(followers.values())
        n1 = sum(count == 1 for count in followers.values())
        n2 = sum(count == 2 for count in followers.values())
        n3 = sum(count >= 3 for count in followers.values())
        count = followers.get(word, 0)
        kept = count - (0, d1, d2, d3)[min(count, 3)]
        return kept / total + (d1 * n1 + d2 * n2 + d3 * n3) / total * below
