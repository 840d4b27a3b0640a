"""What those like who like the same: collaborative filtering by users."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from heapq import nlargest
from math import sqrt
from typing import Any

from prism.social._parameters import Parameters
from prism.social._posts import Network, Post, Reader


def liked_by_similar(
    reader: Reader, network: Network, parameters: Parameters, otherwise: Callable[[Post], Any]
) -> list[Post]:
    """Return the posts that similar readers like, the likeliest first.

    Filtering by the nearest neighbours (Resnick et al. 1994): the similarity of two readers is the
    cosine of their likes (Breese, Heckerman and Kadie 1998), ``|A & B| / sqrt(|A| * |B|)``, and a
    post's rating is the sum of the similarities of those among the nearest who like it. Of the
    likes of a reader and of a post only the newest count, which bounds the work.

    Args:
        reader: For whom.
        network: The posts, with who likes them.
        parameters: How many neighbours and likes count.
        otherwise: By what posts of the same rating are ordered; the largest first.
    """
    most = parameters.likes_compared
    own = reader.liked[-most:]
    common: Counter[Reader] = Counter()
    for post in own:
        common.update(network.likers(post)[-most:])

    common.pop(reader, None)
    similar = {other: count / sqrt(len(own) * len(other.liked)) for other, count in common.items()}
    nearest = nlargest(
        parameters.similar_agents,
        similar.items(),
        key=lambda item: (item[1], otherwise(item[0].liked[-1]), item[0].agent.agent_id),
    )

    ratings: dict[int, float] = {}
    for other, similarity in nearest:
        for post in other.liked[-most:]:
            ratings[post.number] = ratings.get(post.number, 0.0) + similarity

    posts = network.posts
    return sorted(
        (posts[number] for number in ratings),
        key=lambda post: (ratings[post.number], otherwise(post)),
        reverse=True,
    )
