"""Who follows whom: the population's own follows, or a generated network."""

from __future__ import annotations

from collections.abc import Sequence

from prism.agents import SocialAgent
from prism.errors import FieldValueError
from prism.randomness import RandomStream
from prism.social._parameters import Parameters
from prism.worlds._networks import Pair, random_pairs, scale_free_pairs, small_world_pairs


def follows_of(agents: Sequence[SocialAgent], parameters: Parameters) -> list[tuple[str, ...]]:
    """Return the ids of those whom each agent follows, by the parameters.

    A generated network depends on the seed and the ids of the agents, not on their order, so the
    place in a list does not make an agent popular.

    Args:
        agents: The population.
        parameters: Kind and numbers of the network.

    Raises:
        FieldValueError: If there are too few agents for it.
    """
    kind, seed = parameters.follow_network, parameters.seed
    if kind == "given":
        return [agent.following for agent in agents]

    stream = RandomStream(seed, "network")
    order = sorted(
        range(len(agents)),
        key=lambda place: RandomStream(seed, "network", agents[place].agent_id).random(),
    )
    follows = round(len(agents) * parameters.mean_follows)
    mutual = round(follows * parameters.reciprocity / 2)
    pairs = _pairs(len(agents), follows - mutual, parameters, stream)
    # some of the followed agents follow back
    back = stream.sample(pairs, min(mutual, len(pairs)))
    followed: list[dict[int, None]] = [{} for _ in agents]
    for one, other in (*pairs, *((other, one) for one, other in back)):
        followed[one][other] = None

    ids = [agents[place].agent_id for place in order]
    result: list[tuple[str, ...]] = [()] * len(agents)
    for place, others in zip(order, followed, strict=True):
        result[place] = tuple(sorted(ids[other] for other in others))
    return result


def _pairs(size: int, links: int, parameters: Parameters, stream: RandomStream) -> list[Pair]:
    """Return who follows whom, as pairs of places."""
    most = size * (size - 1) // 2
    if links > most:
        raise FieldValueError(
            f"mean_follows must be smaller: {size} agents have {most} pairs, and the network needs "
            f"{links}"
        )
    if parameters.follow_network == "scale_free":
        return scale_free_pairs(size, links, parameters.follower_exponent, stream)
    if parameters.follow_network == "small_world":
        pairs = small_world_pairs(size, links, parameters.rewired, stream)
    else:
        pairs = random_pairs(size, links, stream)
    return [pair if stream.chance(0.5) else pair[::-1] for pair in pairs]
