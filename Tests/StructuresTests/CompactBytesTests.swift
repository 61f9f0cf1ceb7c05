import HermesTesting
import Structures
import Testing
