"""What every store of artifacts does."""

from weft.testing.contracts.artifacts.counting import CountingContract
from weft.testing.contracts.artifacts.finding import FindingContract
from weft.testing.contracts.artifacts.following import FollowingContract
from weft.testing.contracts.artifacts.keeping import KeepingContract
from weft.testing.contracts.artifacts.paging import PagingContract
from weft.testing.contracts.artifacts.seeing import SeeingContract
from weft.testing.contracts.artifacts.taking import TakingContract

__all__ = ["ArtifactStoreContract", "FollowingContract"]


class ArtifactStoreContract(
    KeepingContract,
    PagingContract,
    FindingContract,
    SeeingContract,
    TakingContract,
    CountingContract,
):
    """The suite for `ArtifactStore`."""
