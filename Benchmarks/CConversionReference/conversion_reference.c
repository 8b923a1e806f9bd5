#include "conversion_reference.h"
