"""True statements in unusual notation, written for this test: none may be called false."""

from __future__ import annotations

import pytest

from cotlab.metrics.verification import first_mistake

TRUE_CHAINS = [
    # products without a sign, letters at the edge
    [r"\[60 - 18 = 7xy\]", r"So \(xy = 6\)."],
    ["25 + 11 = 4pq, so pq = 9."],
    [r"\[12 = 3 + 3 r\]"],
    [r"Expanding gives $30 = 6 + 4 k m$."],
    [r"\(8 = 2 AB\)"],
    [r"\[ 50 = 2 \cdot 5 \, h \]"],
    ["the total is 40 = 8n"],
    [r"9 = \frac{3}{2}d"],
    [r"\[21 = 7\lambda\]"],
    [r"\[ 14 = 2 \overline{AB} \]"],
    [r"\[ 10 = 5 \vec{v} \cdot \vec{w} \]"],
    # functions at the edge
    [r"\[ 5 = 10 \sin 30^\circ \]"],
    [r"\[ 49 = 25 + 64 - 2 \cdot 5 \cdot 8 \cos \theta \]"],
    [r"\[ 6 = 2 \log_2 8 \]"],
    [r"\[ 3 = 9 \tan^2 x \]"],
    [r"\ln 1 + 2 = 2 and e^{3 + 0} = e^3"],
    [r"\[ \max(3, 4) + 1 = 5 \]"],
    [r"\[ \gcd(12, 18) + 1 = 7, \quad \operatorname{lcm}(4, 6) = 12 \]"],
    [r"\[ \phi(9) = 9 - 3 = 6 \]"],
    [r"\[ f(2 + 1) = 10, \quad f(3) - 1 = 9 \]"],
    ["abs(-3) + 2 = 5 and sqrt(9) + 1 = 4"],
    [r"\[ \det \begin{pmatrix} 1 & 2 \\ 3 & 4 \end{pmatrix} = 1 \cdot 4 - 2 \cdot 3 = -2 \]"],
    # bars, floors, norms, factorials, binomials
    [r"\[ |3 - 8| + 1 = 5 + 1 = 6 \]"],
    [r"\[ \lvert -7 \rvert - 2 = 7 - 2 = 5 \]"],
    [r"\[ \|\mathbf{u}\|^2 = 1^2 + 2^2 + 2^2 = 9 \]"],
    [r"|A| + |B| - |A \cap B| = 12 + 9 - 4 = 17"],
    [r"\[ \left\lfloor \frac{17}{4} \right\rfloor - 1 = 4 - 1 = 3 \]"],
    [r"\[ \left\lceil \frac{17}{4} \right\rceil = 5 \]"],
    ["⌊7/2⌋ + ⌈7/2⌉ = 3 + 4 = 7"],
    [r"\[ \frac{7!}{5!} = 7 \cdot 6 = 42 \]"],
    ["5! - 4! = 120 - 24 = 96"],
    ["There are 3! = 6 orders, and 2 * 3! = 12 of both kinds!"],
    [r"\[ \binom{6}{2} - 3 = 15 - 3 = 12 \]"],
    [r"\[ {}_5C_2 = 10 \quad\text{and}\quad {}_5P_2 = 20 \]"],
    ["C(5, 2) - 1 = 9"],
    [r"\[ 3!! = 3 \cdot 1 = 3 \]"],
    ["So 3 + 4 = 7!"],
    ["Is 3 + 4 = 8? No, it is 7."],
    [r"\[ 2n! = 12, \quad 4! = 24 n \]"],
    # other arithmetics and bases
    [r"\[ 3 \cdot 5 = 15 \equiv 1 \pmod{7} \]"],
    [r"\[ 2^{10} \equiv 1024 = 1 \mod{11} \]"],
    ["Modulo 5, 3 + 4 = 2 and 3 * 4 = 2."],
    ["11 is congruent to 4 + 0 = 4 (mod 7)"],
    [r"\[ 1011_2 = 8 + 2 + 1 = 11_{10} \]"],
    [r"\[ 12_5 + 4 = 21_5 \]"],
    ["0x1F + 1 = 32"],
    ["10 + 4 = 2 on a clock, since it is arithmetic mod 12."],
    # mixed numbers, recurring decimals, ellipses, ranges, lists
    [r"\[ 2\frac{1}{3} + 1 = \frac{7}{3} + 1 = \frac{10}{3} \]"],
    [r"\[ 5 \frac{1}{2} = \frac{11}{2} \]"],
    [r"\[ 1000x - 10x = 345.4545... - 3.4545... \]"],
    [r"\[ 0.333\ldots + 0.333\ldots = \frac{2}{3} \]"],
    [r"\[ 10 \cdot 0.\overline{3} = 3.\overline{3} \]"],
    [r"\[ 1 + 2 + \cdots + 10 = 55 \]"],
    ["1 + 3 + ... + 9 = 25"],
    ["Students who are 10-12 years old are 40."],
    ["The people aged 30 - 40 are 15 of all."],
    ["the sum of 2, x, y divided by 4 equals 5"],
    [r"the vectors (1, 2) + (3, 4) = (4, 6) and <1, 2> \cdot <3, 4> = 11"],
    ["the ratio is 2:4 = 1:2, at 10:30 + 0:15 = 10:45"],
    ["In first place: 1st + 2 = 3rd."],
    # remainders and units
    [r"\[ 47 \div 6 = 7 \text{ R } 5 \]"],
    ["47 / 6 = 7 remainder 5"],
    [r"\[ \frac{1}{4} \text{ inch} = 5 \text{ miles} \]"],
    ["1/3 cup = 80 ml and 1/2 hour = 30 minutes"],
    [r"\[ 2 \text{ ft} + 6 \text{ in} = 30 \text{ in} \]"],
    [r"\[ 90^\circ - 30^\circ = 60^\circ, \quad 180^{\circ} = \pi \]"],
    ["90 min = 1.5 h, so 90 / 60 = 1 h 30"],
    # subscripts and superscripts
    [r"\[ b_3 = 3b_2 = 3 \cdot 9 = 27 \]"],
    [r"\[ 2F_{4} + F_3 = 2 \cdot 3 + 2 = 8 \]"],
    [r"\[ S_1 + S_2 = 4 + 5 = 9, \quad 2S_1 = 8 \]"],
    [r"\[ x_1 + x_2 = 7, \; x_1 x_2 = 12 \]"],
    # letters bound elsewhere: an unknown, a case, a trial, a letter used anew
    ["Case 1: x = 10 / 2 = 5.", "Case 2: 3x = 21, so x = 7.", "Then x + 1 = 8."],
    [r"Let \(k = 4\).", r"If \(k = 1\), then \(2k + 3 = 5\)."],
    ["Suppose n = 2 + 1 = 3.", "For all n, n^2 + n = n(n + 1).", "When n = 4, n^2 + n = 20."],
    ["The roots of x^2 = x + 1 satisfy x^3 = x^2 + x = 2x + 1."],
    ["Since xy = 6, we have (x + y)^2 = x^2 + 2xy + y^2 = x^2 + y^2 + 12."],
    ["As i^2 = -1, (1 + i)^2 = 1 + 2i + i^2 = 2i."],
    [r"With \(a + b = 5\), \(S = a^2 + ab = a(a + b) = 5a\)."],
    ["Try y = 3: 2y + 1 = 7.", "Solve 2y + 1 = 11: y = 5."],
    # denials, trials and extraneous roots
    [r"\[ 1 + 1 = 3 \] This is a contradiction, so there is no solution."],
    ["Check: 2 + 3 = 6, which is false."],
    ["If it were so, then 4 = 2 + 1. That is impossible."],
    [r"Substitute: \[ 3 + \sqrt{4} = 3 - 2 \]" + "\n" + r"\[ 5 = 1 \]" + "\n(False)"],
    [r"But \(7 \neq 3 + 5 = 8\)."],
    # relations side by side, displays over several lines
    [r"\[ 3 < \frac{20}{6} \approx 4 < 5 \]"],
    ["\\[\n10 = 4\n+ 3\n+ 3\n\\]"],
    [r"\begin{align*} 20 &= 5 + 5 \\ &+ 10 \\ &= 20 \end{align*}"],
    ["\\[\na + b\n- 2 \\times 3 = 4 - 6\n\\]"],
    [r"\[ 7 = 2 \cdot 3 + 1 \] \[ 8 = 2h \]"],
    [r"First, subtract. - \(48 - 2 = 46\)."],
    # roots, pi, symbols
    [r"\[ \sqrt{12} = 2\sqrt{3}, \quad \sqrt[3]{27} + 1 = 4 \]"],
    [r"\[ \frac{1}{\sqrt{2}} = \frac{\sqrt{2}}{2} \]"],
    [r"\[ \frac{4}{3}\pi (3)^3 = 36\pi \]"],
    [r"\[ 2\pi \cdot 5 = 10\pi \approx 31.4 \]"],
    [r"\[ (a+b)^2 = a^2 + 2ab + b^2 \]"],
    [r"\[ P = \frac{n(n+1)}{2} = \frac{n^2+n}{2} \]"],
    [r"\[ \sum_{k=1}^{3} k = 1 + 2 + 3 = 6 \]"],
    [r"\[ \prod_{k=1}^3 k = 6, \quad \int_0^2 x\,dx = 2 \]"],
    [r"\[ a(1 + \frac{1}{2}) = 30, \quad a = 20 \]"],
    [r"\[ P(A \mid B) = \frac{0.2}{0.5} = 0.4 \]"],
    [r"\[ \frac{2}{3} \div \frac{4}{5} = \frac{2}{3} \times \frac{5}{4} = \frac{5}{6} \]"],
    [r"\[ 100\% - 25\% = 75\%, \quad 0.75 \times 100\% = 75\% \]"],
    [r"\[ 1 000 + 1 = 1 001 \]"],
    [r"\[ 3 \pm 2 = 5 \text{ or } 1 \]"],
    [r"$\frac{10}{4}$ is $2.5$ and the answer is $\boxed{\frac{5}{2}}$."],
    [r"the number of subsets of size $5 - 2$ is $10$"],
]


@pytest.mark.parametrize("chain", TRUE_CHAINS, ids=lambda chain: chain[0][:40])
def test_a_true_statement_in_unusual_notation_is_not_called_false(chain: list[str]) -> None:
    assert first_mistake(chain) is None


def test_there_are_more_than_sixty_of_them() -> None:
    assert len(TRUE_CHAINS) > 60
